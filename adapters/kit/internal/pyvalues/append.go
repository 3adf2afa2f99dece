package pyvalues

import (
	"errors"
	"math/big"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Append writes an object, and what lies in it. What crosses, and as what:
//
//   - None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset and dict, as what they are; instances of
//     classes that are made from them, as what these see in them; bytearray as bytes
//   - named tuples and instances of dataclasses: as records, with the name of their class
//   - members of an enum: as their values
//   - scalars of NumPy: as what their item() gives
//   - what arrays says is an array: as its number; nil means that arrays cannot cross
//
// What cannot cross is a core.Error of the category unsupported, which says where in o it is: a str with a lone surrogate,
// a container that contains itself or changes meanwhile, and all other objects. An exception of the program's code, or an
// error of arrays, is returned with the place before it. After an error w has a part of the form.
//
// Of the program's code only that runs which gives a dataclass the values of its fields, and what arrays runs.
func Append(g *py.GIL, w *values.Writer, o py.Object, arrays *Arrays) error {
	a := appender{gil: g, w: w, arrays: arrays, Plain: g.Plain(), start: len(w.Form())}
	defer a.Close()
	return values.Report("append", a.all(o))
}

// Arrays says which objects are arrays.
type Arrays struct {
	// Is reports whether an object is an array. It is asked about objects that are nothing else that crosses.
	Is func(g *py.GIL, o py.Object) bool
	// Known reports that an object of exactly this class is an array, so that it need not be asked whether it is something else.
	Known func(class py.Object) bool
	// Number gives the number of an array. It must keep the object if it needs it later.
	Number func(g *py.GIL, o py.Object) (int, error)
}

// Place says where in o the array with a number is: `["a"][3]`. It is "" for o itself, and if o has changed and there is no such array.
func Place(g *py.GIL, o py.Object, arrays Arrays, number int) string {
	n := 0
	arrays.Number = func(*py.GIL, py.Object) (int, error) {
		if n == number {
			return 0, errHere
		}
		n++
		return 0, nil
	}
	if err := Append(g, values.NewWriter(nil), o, &arrays); errors.Is(err, errHere) {
		return values.Place(err)
	}
	return ""
}

var errHere = errors.New("the array is here")

type appender struct {
	*py.Plain
	gil    *py.GIL
	w      *values.Writer
	arrays *Arrays
	start  int // of the form
	stood  int // how many objects in a row have stood for others
}

func (a *appender) all(o py.Object) error {
	for pieces, fault := a.Begin(o); ; pieces, fault = a.Read() {
		for i := range pieces {
			if err := a.piece(&pieces[i]); err != nil {
				return values.At(path(a.gil, a.Plain), err)
			}
		}
		switch {
		case fault.Kind != 0:
			return values.At(path(a.gil, a.Plain), a.fault(fault))
		case a.AtEnd():
			return nil
		case len(a.w.Form())-a.start > values.MaxSize:
			return values.TooLarge()
		}
	}
}

func (a *appender) fault(f py.PlainFault) error {
	switch f.Kind {
	case py.PlainDeep:
		return values.TooDeep()
	case py.PlainChanged:
		return values.Cannot("it has changed while it was read")
	case py.PlainNoText:
		return values.Cannot("a str with a lone surrogate cannot cross")
	default:
		return f.Err
	}
}

func (a *appender) piece(p *py.Piece) error {
	if p.Kind != py.PieceObject {
		a.stood = 0
	}
	switch p.Kind {
	case py.PieceNone:
		a.w.Null()
	case py.PieceFalse, py.PieceTrue:
		a.w.Bool(p.Kind == py.PieceTrue)
	case py.PieceInt:
		a.w.Int(p.N)
	case py.PieceBig:
		n, ok := new(big.Int).SetString(string(p.Text()), 0)
		if !ok {
			return values.Cannot("an int that Python cannot write cannot cross")
		}
		a.w.BigInt(n)
	case py.PieceFloat:
		a.w.Float(p.Re)
	case py.PieceComplex:
		a.w.Complex(complex(p.Re, p.Im))
	case py.PieceStr:
		a.w.TextBytes(p.Text())
	case py.PieceBytes:
		a.w.Bytes(p.Text())
	case py.PieceList:
		a.w.List(int(p.N))
	case py.PieceTuple:
		a.w.Tuple(int(p.N))
	case py.PieceSet:
		a.w.Set(int(p.N))
	case py.PieceFrozenSet:
		a.w.FrozenSet(int(p.N))
	case py.PieceDict:
		a.w.Dict(int(p.N / 2))
	default:
		if a.arrays != nil && a.arrays.Known(p.Class()) {
			a.stood = 0
			return a.array(p.Object)
		}
		return a.gil.Nested(func() error { return a.object(p.Object) })
	}
	return nil
}

// maxInstead is how many objects in a row may stand for each other: members of enums can have others as their values.
const maxInstead = 10

// object writes an object that is not plain, or gives what is read instead of it.
func (a *appender) object(o py.Object) error {
	a.gil.Share(o)
	if a.gil.IsTuple(o) {
		a.stood = 0
		return a.tuple(o)
	}
	if v, ok, err := a.stands(o); err != nil {
		return err
	} else if ok {
		if a.stood++; a.stood > maxInstead {
			return values.Cannot("%s that stands for others without end cannot cross", values.A(a.gil.TypeName(o)))
		}
		a.Give(v)
		return nil
	}
	a.stood = 0
	if names, items, ok, err := a.dataclass(o); ok || err != nil {
		if err == nil {
			err = a.record(o, names, items)
		}
		return err
	}
	if a.arrays != nil && a.arrays.Is(a.gil, o) {
		return a.array(o)
	}
	return values.Cannot("%s cannot cross; %s", values.A(a.gil.TypeName(o)), a.instead(o))
}

// array writes an array.
func (a *appender) array(o py.Object) error {
	i, err := a.arrays.Number(a.gil, o)
	if err == nil {
		a.w.Array(i)
	}
	return err
}

// instead says what whoever hands o over can hand over in place of it.
func (a *appender) instead(o py.Object) string {
	switch has := func(name string) bool { return a.gil.ClassHas(o, name) }; {
	case has("__anext__"):
		return "the host's Func.Stream takes such values one by one"
	case has("__next__"):
		return "hand over list(...) of it, or have the host take the values one by one (Func.Stream)"
	case has("keys"):
		return "hand over dict(...) of it"
	case has("__iter__"):
		return "hand over list(...) of it"
	default:
		return "hand over numbers, text or arrays that say what is in it"
	}
}

// tuple writes the head of a tuple of a class that is made from tuple.
func (a *appender) tuple(o py.Object) error {
	items, err := a.gil.TupleItems(o)
	if err != nil {
		return err
	}
	if names, ok, err := a.get(a.gil.Type(o), "_fields"); err != nil {
		return err
	} else if ok && a.names(names, len(items)) {
		return a.record(o, names, o)
	}
	a.w.Tuple(len(items))
	return a.given(a.GiveItems(py.PieceTuple, o))
}

// names reports whether o is a tuple of that many names.
func (a *appender) names(o py.Object, n int) bool {
	if !a.gil.IsTuple(o) {
		return false
	}
	names, err := a.gil.TupleItems(o)
	for _, name := range names {
		if !a.gil.IsStr(name) {
			return false
		}
	}
	return err == nil && len(names) == n
}

// record writes the head of a record, whose names and values are tuples.
func (a *appender) record(o, names, items py.Object) error {
	n, err := a.gil.TupleItems(names)
	if err != nil {
		return err
	}
	a.w.Record(a.gil.TypeName(o), len(n))
	return a.given(a.GiveRecord(names, items))
}

func (a *appender) given(f py.PlainFault) error {
	if f.Kind != 0 {
		return a.fault(f)
	}
	return nil
}

// variable gives what a module has under a name, if the module is loaded.
func (a *appender) variable(module, name string) (py.Object, bool) {
	m, ok := a.gil.Loaded(module)
	if !ok {
		return 0, false
	}
	return a.gil.Variable(m, name)
}

// get gives an attribute by a name that is asked for again and again.
func (a *appender) get(o py.Object, name string) (py.Object, bool, error) {
	key, err := a.gil.Interned(name)
	if err != nil {
		return 0, false, err
	}
	return a.gil.GetOK(o, key)
}

// stands gives the object that stands for o: the value of an enum's member, or what a scalar of NumPy's has.
func (a *appender) stands(o py.Object) (v py.Object, ok bool, err error) {
	if enum, ok := a.variable("enum", "Enum"); ok && a.gil.IsInstance(o, enum) {
		return a.get(o, "_value_")
	}
	generic, ok := a.variable("numpy", "generic")
	if !ok || !a.gil.IsInstance(o, generic) {
		return 0, false, nil
	}
	for _, name := range []string{"datetime64", "timedelta64"} { // item() gives an object, or a number without a unit
		if class, ok := a.variable("numpy", name); ok && a.gil.IsInstance(o, class) {
			return 0, false, values.Cannot("a numpy.%s cannot cross; hand over x.astype(int), or str(x)", name)
		}
	}
	if v, err = a.gil.CallMethod(o, "item", nil, nil); err != nil {
		return 0, false, err
	}
	if a.gil.IsInstance(v, generic) {
		return 0, false, values.Cannot("%s cannot cross: Python has no number like it; hand over float(x), complex(x) or str(x)", values.A(a.gil.TypeName(o)))
	}
	return v, true, nil
}

// dataclass gives the names and values of the fields of a dataclass's instance.
func (a *appender) dataclass(o py.Object) (names, items py.Object, ok bool, err error) {
	field, ok := a.variable("dataclasses", "_FIELD")
	if !ok || !a.gil.ClassHas(o, "__dataclass_fields__") {
		return 0, 0, false, nil
	}
	all, ok, err := a.get(a.gil.Type(o), "__dataclass_fields__")
	if !ok || err != nil || !a.gil.IsDict(all) {
		return 0, 0, false, err
	}
	fields, err := a.gil.DictItems(all)
	if err != nil {
		return 0, 0, false, err
	}
	var n, v []py.Object
	for name, f := range fields {
		kind, ok, err := a.get(f, "_field_type")
		if err != nil {
			return 0, 0, false, err
		}
		if !ok || kind != field || !a.gil.IsStr(name) { // a class's variable, or an argument of its __init__
			continue
		}
		value, ok, err := a.gil.GetOK(o, name)
		if err == nil && !ok {
			err = values.Cannot("%s without a field that its class has cannot cross", values.A(a.gil.TypeName(o)))
		}
		if err != nil {
			return 0, 0, false, values.At("."+text(a.gil, name), err)
		}
		n, v = append(n, name), append(v, value)
	}
	if names, err = a.gil.NewTuple(n...); err == nil {
		items, err = a.gil.NewTuple(v...)
	}
	return names, items, err == nil, err
}
