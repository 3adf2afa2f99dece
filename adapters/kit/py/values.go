package py

import "iter"

// None gives None, which like True and False belongs to no scope: Python holds it as long as it runs.
func (g *GIL) None() Object { return capiNone() }

// True gives True.
func (g *GIL) True() Object { return capiTrue() }

// False gives False.
func (g *GIL) False() Object { return capiFalse() }

// IsNone reports whether o is None.
func (g *GIL) IsNone(o Object) bool { return o == capiNone() }

// IsBool reports whether o is True or False.
func (g *GIL) IsBool(o Object) bool { return o == capiTrue() || o == capiFalse() }

// The bits by which a type says what it is made from; a part of the stable ABI.
const (
	flagFixed = 1 << 8 // of a heap type: made by C code, and immutable
	flagHeap  = 1 << 9 // made at run time, as all types of Python code are
	flagInt   = 1 << 24
	flagList  = 1 << 25
	flagTuple = 1 << 26
	flagStr   = 1 << 28
	flagDict  = 1 << 29
	flagType  = 1 << 31
)

func is(o Object, flag uint64) bool { return capiIs(o, flag) }

// IsInt reports whether o is an int (so also whether it is a bool).
func (g *GIL) IsInt(o Object) bool { return is(o, flagInt) }

// IsStr reports whether o is a str.
func (g *GIL) IsStr(o Object) bool { return is(o, flagStr) }

// IsTuple reports whether o is a tuple.
func (g *GIL) IsTuple(o Object) bool { return is(o, flagTuple) }

// IsList reports whether o is a list.
func (g *GIL) IsList(o Object) bool { return is(o, flagList) }

// IsDict reports whether o is a dict.
func (g *GIL) IsDict(o Object) bool { return is(o, flagDict) }

// IsCallable reports whether o can be called.
func (g *GIL) IsCallable(o Object) bool { return capiCallable(o) }

// NewInt makes an int.
func (g *GIL) NewInt(v int64) (Object, error) { return g.take(capiNewInt(v)) }

// NewUint makes an int.
func (g *GIL) NewUint(v uint64) (Object, error) { return g.take(capiNewUint(v)) }

// NewStr makes a str. It fails if s is not UTF-8.
func (g *GIL) NewStr(s string) (Object, error) { return g.take(capiNewStr(s)) }

// Interned gives a str that is never given back, and the same one for the same text: for names that are
// looked up again and again. Each distinct text takes memory for good.
func (g *GIL) Interned(text string) (Object, error) {
	i := g.interp
	i.namesMu.Lock()
	defer i.namesMu.Unlock()
	if o, ok := i.interned[text]; ok {
		return o, nil
	}
	o := capiNewInterned(text)
	if o == 0 {
		return 0, g.failure()
	}
	i.interned[text] = o
	return o, nil
}

// NewKey makes a str by which things are looked up: the same one for the same text, as long as it lives.
func (g *GIL) NewKey(text string) (Object, error) { return g.take(capiNewInterned(text)) }

// NewTuple makes a tuple.
func (g *GIL) NewTuple(items ...Object) (Object, error) { return g.take(capiNewTuple(items)) }

// Bool gives bool(o).
func (g *GIL) Bool(o Object) (bool, error) {
	r := capiTruth(o)
	if r < 0 {
		return false, g.failure()
	}
	return r != 0, nil
}

// Int64 gives the value of an int, or of what operator.index takes for one. It fails for anything
// else, floats included, and for values that do not fit.
func (g *GIL) Int64(o Object) (int64, error) {
	i := capiIndex(o)
	if i == 0 {
		return 0, g.failure()
	}
	defer capiDecref(i)
	v := capiInt64(i)
	if v == -1 && capiFailed() {
		return 0, g.failure()
	}
	return v, nil
}

// Uint64 is Int64 for unsigned values.
func (g *GIL) Uint64(o Object) (uint64, error) {
	v := capiUint64(o)
	if v == ^uint64(0) && capiFailed() {
		return 0, g.failure()
	}
	return v, nil
}

// Ask calls methods of o without arguments, one after the other, that give ints which are not negative, or bools.
func (g *GIL) Ask(o Object, methods ...string) (answers []uint64, err error) {
	names := make([]Object, len(methods))
	for i, method := range methods {
		if names[i], err = g.Interned(method); err != nil {
			return nil, err
		}
	}
	answers = make([]uint64, len(methods))
	if !capiAskAll(o, names, answers) {
		return nil, g.failure()
	}
	return answers, nil
}

// Float64 gives float(o) of a number.
func (g *GIL) Float64(o Object) (float64, error) {
	v := capiFloat64(o)
	if v == -1 && capiFailed() {
		return 0, g.failure()
	}
	return v, nil
}

// Text gives the text of a str in UTF-8. Lone surrogates, which UTF-8 cannot say, are written as
// "\udc80". It fails for anything but a str.
func (g *GIL) Text(o Object) (string, error) {
	s, ok := capiText(o)
	if !ok {
		return "", g.failure()
	}
	return s, nil
}

// NameText is Text for a str that is part of a name. It is not ok for one with lone surrogates: another str has its text, and that name.
func (*GIL) NameText(o Object) (text string, ok bool) {
	if text, ok = capiUTF8(o); !ok {
		capiClear()
	}
	return text, ok
}

// Str gives str(o).
func (g *GIL) Str(o Object) (string, error) { return g.textOf(capiStr(o)) }

// Repr gives repr(o).
func (g *GIL) Repr(o Object) (string, error) { return g.textOf(capiRepr(o)) }

func (g *GIL) textOf(s Object) (string, error) {
	if s == 0 {
		return "", g.failure()
	}
	defer capiDecref(s)
	return g.Text(s)
}

// TupleItems gives the items of a tuple.
func (g *GIL) TupleItems(o Object) ([]Object, error) {
	n := capiTupleLen(o)
	if n < 0 {
		return nil, g.failure()
	}
	g.own(g.Keep(o)) // holds the items, which are borrowed
	items := make([]Object, n)
	for i := range items {
		items[i] = capiTupleItem(o, i)
	}
	return items, nil
}

// ListItems gives the items that a list has now.
func (g *GIL) ListItems(o Object) ([]Object, error) {
	tuple, err := g.take(capiListTuple(o))
	if err != nil {
		return nil, err
	}
	return g.TupleItems(tuple)
}

// NewDict makes a dict without items.
func (g *GIL) NewDict() (Object, error) { return g.take(capiNewDict()) }

// SetItem gives a dict an item.
func (g *GIL) SetItem(dict, key, value Object) error {
	if capiDictSet(dict, key, value) < 0 {
		return g.failure()
	}
	return nil
}

// DictItems gives the keys and values that a dict has now, in its order. The dict may change
// meanwhile.
func (g *GIL) DictItems(o Object) (iter.Seq2[Object, Object], error) {
	pairs, err := g.take(capiDictItems(o))
	if err != nil {
		return nil, err
	}
	return func(yield func(key, value Object) bool) {
		for i := range capiTupleLen(pairs) {
			pair := capiTupleItem(pairs, i)
			if !yield(capiTupleItem(pair, 0), capiTupleItem(pair, 1)) {
				return
			}
		}
	}, nil
}
