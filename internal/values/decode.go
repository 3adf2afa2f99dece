package values

import (
	"fmt"
	"math"
	"math/big"
	"reflect"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Decode reads a form into the variable that into points to. What fits what:
//
//   - an empty interface: everything, as [Value] gives it
//   - a pointer: what fits the variable that it leads to, which is made anew; None makes it nil
//   - None: also interfaces, slices and maps, which become nil
//   - bool, str and bytes: types made from bool, string, and slices of bytes; bytes also arrays of as many
//   - int: integers in which it has room, [big.Int], floats and complex numbers; float: floats and complex numbers
//   - list, tuple, set, frozenset: slices, and arrays of that length; so do records, by their fields' values
//   - dict: maps, and structs by the tags of their fields, `python:"name"`, or without one by the field's name, in
//     any case of letters if there is no such key; so do records, by their fields' names. A key that the struct does not have is passed over. A field without a key stays as it is, and so do
//     the other keys of a map
//   - array: [*core.View], which the function array gives for the number of the array
//   - [contract.Tuple], [contract.Set], [contract.FrozenSet], [contract.Dict], [contract.Record]: what they are called; any sequence fits the first three
//
// What does not fit is a [*core.Error] with [core.ErrConfig], which says where in the value it is. What was decoded until
// then stays decoded. Otherwise errors are those of Value.
func Decode(b []byte, into any, array func(i int) (*core.View, error)) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return &core.Error{Op: "decode", Kind: core.ErrConfig, Err: fmt.Errorf("%T is not a pointer to a variable", into)}
	}
	d := decoder{Reader: Reader{b: b}, array: array}
	err := d.into(v.Elem())
	if err == nil {
		err = d.End()
	}
	return Report("decode", err)
}

// misfit is the error of a token that does not fit a type.
func misfit(t *Token, to reflect.Type) error {
	what := t.Kind.String()
	switch t.Kind {
	case KindInt, KindBig:
		if n := t.Big(); n.BitLen() <= 64 {
			what += " " + n.String()
		} else {
			what += fmt.Sprintf(" of %d bits", n.BitLen())
		}
	case KindFloat:
		what += fmt.Sprintf(" %v", real(t.Num))
	case KindRecord:
		what = string(t.Bytes)
	default:
	}
	return misfits("%s does not fit %s", what, to)
}

func misfits(format string, args ...any) error {
	return &PlaceError{Kind: core.ErrConfig, Err: fmt.Errorf(format, args...)}
}

// into decodes the next item into a variable.
func (d *decoder) into(v reflect.Value) error {
	t, err := d.Next()
	if err != nil {
		return err
	}
	return d.token(&t, v)
}

func (d *decoder) token(t *Token, v reflect.Value) error {
	if special(v.Type()) {
		return d.special(t, v)
	}
	switch kind := v.Kind(); {
	case kind == reflect.Interface && v.NumMethod() == 0:
		got, err := d.any(t)
		if err != nil {
			return err
		}
		if got == nil {
			v.SetZero()
		} else {
			v.Set(reflect.ValueOf(got))
		}
		return nil
	case t.Kind == KindNull:
		switch kind {
		case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
			v.SetZero()
			return nil
		default:
			return misfit(t, v.Type())
		}
	case kind == reflect.Pointer && endless(v.Type()):
		return misfits("nothing but None fits %s, whose pointers lead to no variable", v.Type())
	case kind == reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if err := d.token(t, to.Elem()); err != nil {
			return err
		}
		v.Set(to)
		return nil
	case t.Kind < KindArray:
		return scalar(t, v)
	case t.Kind == KindDict || t.Kind == KindRecord:
		return d.mapping(t, v)
	case t.Kind == KindArray && (kind == reflect.Slice || kind == reflect.Array):
		return misfits("array does not fit %s; decode it into a *core.View, which core.Slice and core.Values read", v.Type())
	case t.Kind == KindArray:
		return misfit(t, v.Type())
	default:
		return d.sequence(t, v)
	}
}

// endless reports whether a type's pointers lead to pointers only, as those of type P *P.
func endless(t reflect.Type) bool {
	for range maxPointers {
		if t.Kind() != reflect.Pointer || special(t) {
			return false
		}
		t = t.Elem()
	}
	return true
}

// special decodes into a type that is special.
func (d *decoder) special(t *Token, v reflect.Value) error {
	switch to := v.Addr().Interface().(type) {
	case **core.View:
		if t.Kind == KindArray {
			view, err := d.view(t)
			if err == nil {
				*to = view
			}
			return err
		}
	case **big.Int:
		if t.Kind == KindInt || t.Kind == KindBig {
			*to = t.Big()
			return nil
		}
	case *big.Int:
		if t.Kind == KindInt || t.Kind == KindBig {
			to.Set(t.Big())
			return nil
		}
	case *contract.Dict:
		if t.Kind == KindDict {
			pairs, err := d.pairs(t)
			*to = pairs
			return err
		}
	case *contract.Record:
		if t.Kind == KindRecord {
			r, err := d.record(t)
			*to = r
			return err
		}
	default: // the sequences
		if t.Kind >= KindList && t.Kind <= KindFrozenSet {
			items, err := d.items(t)
			if err == nil {
				v.Set(reflect.ValueOf(items).Convert(v.Type()))
			}
			return err
		}
	}
	if kind := v.Kind(); t.Kind == KindNull && (kind == reflect.Pointer || kind == reflect.Slice) {
		v.SetZero()
		return nil
	}
	return misfit(t, v.Type())
}

// scalar decodes what is no container.
func scalar(t *Token, v reflect.Value) error {
	switch t.Kind {
	case KindBool:
		if v.Kind() == reflect.Bool {
			v.SetBool(t.Int != 0)
			return nil
		}
	case KindInt, KindBig:
		return integer(t, v)
	case KindFloat, KindComplex:
		if number(v, t.Num, t.Kind == KindFloat) {
			return nil
		}
	case KindText:
		if v.Kind() == reflect.String {
			v.SetString(string(t.Bytes))
			return nil
		}
	default:
		if setBytes(t.Bytes, v) {
			return nil
		}
	}
	return misfit(t, v.Type())
}

func setBytes(p []byte, v reflect.Value) bool {
	kind := v.Kind()
	if kind != reflect.Slice && kind != reflect.Array || v.Type().Elem().Kind() != reflect.Uint8 {
		return false
	}
	if kind == reflect.Array && v.Len() != len(p) {
		return false
	}
	if kind == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(p), len(p)))
	}
	copy(v.Bytes(), p)
	return true
}

// integer decodes an int.
func integer(t *Token, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t.Kind == KindInt && !v.OverflowInt(t.Int) {
			v.SetInt(t.Int)
			return nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if n := t.Big(); n.IsUint64() && !v.OverflowUint(n.Uint64()) {
			v.SetUint(n.Uint64())
			return nil
		}
	default:
		f := float64(t.Int)
		if t.Kind == KindBig {
			f, _ = new(big.Float).SetInt(t.Big()).Float64()
		}
		if !math.IsInf(f, 0) && number(v, complex(f, 0), true) {
			return nil
		}
	}
	return misfit(t, v.Type())
}

// number sets a float or a complex number. It reports whether there is room in it for this one, which is real or not.
func number(v reflect.Value, n complex128, isReal bool) bool {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if !isReal || v.OverflowFloat(real(n)) {
			return false
		}
		v.SetFloat(real(n))
	case reflect.Complex64, reflect.Complex128:
		if v.OverflowComplex(n) {
			return false
		}
		v.SetComplex(n)
	default:
		return false
	}
	return true
}

// maxFirst is for how many items there is room in a new slice; more room is made as they come.
const maxFirst = 64

// sequence decodes a list, tuple, set or frozenset.
func (d *decoder) sequence(t *Token, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Array:
		if v.Len() != t.N {
			return misfits("a %s of %d items does not fit %s", t.Kind, t.N, v.Type())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, min(t.N, maxFirst)))
	default:
		return misfit(t, v.Type())
	}
	for i := range t.N {
		if err := d.item(v, i); err != nil {
			return At(Index(i), err)
		}
	}
	return nil
}

// item decodes an item into an array, or behind those of a slice.
func (d *decoder) item(v reflect.Value, i int) error {
	if v.Kind() == reflect.Slice {
		v.Grow(1)
		v.SetLen(i + 1)
		v.Index(i).SetZero()
	}
	return d.into(v.Index(i))
}

// mapping decodes a dict or a record.
func (d *decoder) mapping(t *Token, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Struct:
		return d.fields(t, v)
	case v.Kind() == reflect.Map:
		return d.entries(t, v)
	case t.Kind == KindRecord && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array):
		return d.recordItems(t, v)
	default:
		return misfit(t, v.Type())
	}
}

func (d *decoder) entries(t *Token, v reflect.Value) error {
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(v.Type(), min(t.N, maxFirst)))
	}
	for range t.N {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := d.into(key); err != nil {
			return At("[...]", err)
		}
		if !key.Comparable() {
			return misfits("a key of the type %T does not fit %s; decode into values of type Dict", key.Interface(), v.Type())
		}
		if err := d.into(value); err != nil {
			return At(step(key.Interface()), err)
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

func (d *decoder) fields(t *Token, v reflect.Value) error {
	known := fieldsOf(v.Type())
	var named []bool // which fields have got what is under their very names; nil: none, or no field can get anything else
	if len(known.folded) > 0 {
		named = make([]bool, len(known.list))
	}
	for range t.N {
		key, err := d.Next()
		if err != nil {
			return err
		}
		for n := key.Items(); n > 0; n-- { // a key of another kind
			if err := d.Skip(); err != nil {
				return err
			}
		}
		at, exact, ok := known.field(key.Bytes)
		if !ok || key.Kind != KindText || !exact && named[at] {
			if err := d.Skip(); err != nil {
				return err
			}
			continue
		}
		if exact && named != nil {
			named[at] = true
		}
		if err := d.into(v.FieldByIndex(known.list[at].index)); err != nil {
			if t.Kind == KindRecord {
				return At("."+string(key.Bytes), err)
			}
			return At(Key(string(key.Bytes)), err)
		}
	}
	return nil
}

// recordItems decodes the values of a record's fields.
func (d *decoder) recordItems(t *Token, v reflect.Value) error {
	if v.Kind() == reflect.Array && v.Len() != t.N {
		return misfits("%s with %d fields does not fit %s", t.Bytes, t.N, v.Type())
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 0, min(t.N, maxFirst)))
	}
	for i := range t.N {
		name, err := d.Next()
		if err != nil {
			return err
		}
		if err := d.item(v, i); err != nil {
			return At("."+string(name.Bytes), err)
		}
	}
	return nil
}
