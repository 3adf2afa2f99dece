package values

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Append writes v behind b. What crosses, and as what:
//
//   - nil and nil pointers: None; pointers and interfaces: what they lead to
//   - bool; integers, and [*big.Int]: int; floats: float; complex numbers: complex
//   - string: str; slices and arrays of bytes: bytes
//   - slices and arrays: list; [contract.Tuple], [contract.Set], [contract.FrozenSet]: what they are called
//   - maps: dict, in the order of their keys, of which those that are arrays become tuples; [contract.Dict]: dict, in its own order
//   - structs: dict, by the names of their fields, or their tags `python:"name"`; [contract.Record]: dict
//   - [*core.View]: an array, whose number the function array gives
//
// A slice or map that is nil is empty. What cannot cross (a channel, a function, a value that contains itself) is a
// [*core.Error] with [core.ErrUnsupported], which says where in v it is. An error of array is returned with the place
// before it. A nil array means that arrays cannot cross.
func Append(b []byte, v any, array func(*core.View) (int, error)) ([]byte, error) {
	e := encoder{Writer: Writer{b}, array: array}
	if err := e.value(v, 0); err != nil {
		return b, Report("encode", err)
	}
	return e.b, nil
}

// AppendCall writes the arguments of a call behind b, a tuple of those by position and a dict of those by name, and
// nothing of its own to the heap. See [Append] for both.
func AppendCall(b []byte, args []any, kw map[string]any, array func(*core.View) (int, error)) ([]byte, error) {
	e := encoder{Writer: Writer{b}, array: array}
	e.Tuple(2)
	e.Tuple(len(args))
	if err := e.items(args, 1); err != nil {
		return b, Report("encode", err)
	}
	if err := e.dict(kw, 1); err != nil {
		return b, Report("encode", err)
	}
	return e.b, nil
}

type encoder struct {
	Writer
	array func(*core.View) (int, error)
	key   bool // writes a key of a map: no list can be one
}

// value writes a value that lies in depth containers. The types that values of unknown type most often have come first:
// what is left is for reflection.
func (e *encoder) value(v any, depth int) error {
	switch v := v.(type) {
	case nil:
		e.Null()
	case bool:
		e.Bool(v)
	case int:
		e.Int(int64(v))
	case float64:
		e.Float(v)
	case string:
		return e.text(v)
	case []byte:
		e.Bytes(v)
	case []any:
		e.List(len(v))
		return e.items(v, depth)
	case map[string]any:
		return e.dict(v, depth)
	case contract.Tuple:
		e.Tuple(len(v))
		return e.items(v, depth)
	case contract.Set:
		e.Set(len(v))
		return e.items(v, depth)
	case contract.FrozenSet:
		e.FrozenSet(len(v))
		return e.items(v, depth)
	case contract.Dict:
		return e.pairs(v, depth)
	case contract.Record:
		return e.record(v, depth)
	case *core.View:
		return e.view(v)
	case *big.Int:
		if v == nil {
			e.Null()
		} else {
			e.BigInt(v)
		}
	case big.Int:
		e.BigInt(&v)
	default:
		return e.reflected(reflect.ValueOf(v), depth)
	}
	return nil
}

func (e *encoder) text(s string) error {
	if !utf8.ValidString(s) {
		return Cannot("a text that is not UTF-8 cannot cross; pass bytes")
	}
	e.Text(s)
	return nil
}

func (e *encoder) view(v *core.View) error {
	if v == nil {
		e.Null()
		return nil
	}
	if e.array == nil {
		return Cannot("an array cannot cross here")
	}
	i, err := e.array(v)
	if err != nil {
		return At("", err)
	}
	e.Array(i)
	return nil
}

// room tells whether there is room for another container, in depth others.
func (e *encoder) room(depth int) error {
	switch {
	case depth == MaxDepth:
		return TooDeep()
	case len(e.b) > MaxSize:
		return TooLarge()
	default:
		return nil
	}
}

func (e *encoder) items(items []any, depth int) error {
	if err := e.room(depth); err != nil {
		return err
	}
	for i, v := range items {
		if err := e.value(v, depth+1); err != nil {
			return At(Index(i), err)
		}
	}
	return nil
}

func (e *encoder) dict(m map[string]any, depth int) error {
	if err := e.room(depth); err != nil {
		return err
	}
	e.Dict(len(m))
	var few [8]string
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := e.text(k); err != nil {
			return At(Key(k), err)
		}
		if err := e.value(m[k], depth+1); err != nil {
			return At(Key(k), err)
		}
	}
	return nil
}

func (e *encoder) pairs(pairs []contract.Pair, depth int) error {
	if err := e.room(depth); err != nil {
		return err
	}
	e.Dict(len(pairs))
	for _, p := range pairs {
		if err := e.value(p.Key, depth+1); err != nil {
			return At(step(p.Key), err)
		}
		if err := e.value(p.Value, depth+1); err != nil {
			return At(step(p.Key), err)
		}
	}
	return nil
}

// step is the step to what is under a key.
func step(key any) string {
	switch v := reflect.ValueOf(key); v.Kind() {
	case reflect.String:
		return Key(v.String())
	case reflect.Invalid:
		return "[None]"
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return fmt.Sprintf("[%v]", v)
	default:
		return fmt.Sprintf("[a %T]", key)
	}
}

func (e *encoder) record(r contract.Record, depth int) error {
	if err := e.room(depth); err != nil {
		return err
	}
	if !utf8.ValidString(r.Type) {
		return Cannot("the type of a record is not UTF-8")
	}
	e.Record(r.Type, len(r.Fields))
	for _, f := range r.Fields {
		if err := e.text(f.Name); err != nil {
			return At(Key(f.Name), err)
		}
		if err := e.value(f.Value, depth+1); err != nil {
			return At("."+f.Name, err)
		}
	}
	return nil
}

// maxPointers is how many pointers and interfaces may lead to each other: more of them are a circle.
const maxPointers = 100

// reflected writes a value of any type.
func (e *encoder) reflected(v reflect.Value, depth int) error {
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			return e.plain(v, depth)
		}
		if special(v.Type()) {
			return e.value(v.Interface(), depth)
		}
		if v.IsNil() {
			e.Null()
			return nil
		}
		v = v.Elem()
	}
	return Cannot("a pointer that leads to itself cannot cross")
}

// The types that cross in a way of their own, whatever they are made of.
var specials = [...]reflect.Type{
	reflect.TypeFor[*core.View](), reflect.TypeFor[*big.Int](), reflect.TypeFor[big.Int](), reflect.TypeFor[contract.Tuple](),
	reflect.TypeFor[contract.Set](), reflect.TypeFor[contract.FrozenSet](), reflect.TypeFor[contract.Dict](), reflect.TypeFor[contract.Record](),
}

func special(t reflect.Type) bool { return slices.Contains(specials[:], t) }

// plain writes a value that is neither a pointer nor an interface.
func (e *encoder) plain(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.Bool:
		e.Bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.Int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.Uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		e.Float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		e.Complex(v.Complex())
	case reflect.String:
		return e.text(v.String())
	case reflect.Invalid:
		e.Null()
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		switch {
		case special(v.Type()):
			return e.value(v.Interface(), depth)
		case v.Kind() == reflect.Map:
			return e.goMap(v, depth)
		case v.Kind() == reflect.Struct:
			return e.goStruct(v, depth)
		default:
			return e.sequence(v, depth)
		}
	default:
		return Cannot("%s cannot cross", A(v.Type().String()))
	}
	return nil
}

// sequence writes a slice or an array.
func (e *encoder) sequence(v reflect.Value, depth int) error {
	n := v.Len()
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Kind() == reflect.Slice {
			e.Bytes(v.Bytes())
			return nil
		}
		e.head(majorBytes, uint64(n))
		for i := range n {
			e.b = append(e.b, byte(v.Index(i).Uint()))
		}
		return nil
	}
	if err := e.room(depth); err != nil {
		return err
	}
	if e.key {
		e.Tuple(n)
	} else {
		e.List(n)
	}
	for i := range n {
		if err := e.reflected(v.Index(i), depth+1); err != nil {
			return At(Index(i), err)
		}
	}
	return nil
}

func (e *encoder) goStruct(v reflect.Value, depth int) error {
	if v.Type() == reflect.TypeFor[core.View]() {
		return Cannot("a core.View cannot cross; pass a pointer to it")
	}
	if err := e.room(depth); err != nil {
		return err
	}
	fields := fieldsOf(v.Type()).list
	if len(fields) == 0 && v.NumField() > 0 {
		return Cannot("%s cannot cross: it has no exported fields", A(v.Type().String()))
	}
	e.Dict(len(fields))
	for _, f := range fields {
		if err := e.text(f.name); err != nil {
			return At("."+f.name, err)
		}
		if err := e.reflected(v.FieldByIndex(f.index), depth+1); err != nil {
			return At("."+f.name, err)
		}
	}
	return nil
}

// goMap writes a map. Texts are in the order of texts, numbers of one kind in that of their forms.
func (e *encoder) goMap(v reflect.Value, depth int) error {
	if err := e.room(depth); err != nil {
		return err
	}
	type entry struct {
		text       string
		form       []byte
		key, value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		n := entry{key: it.Key(), value: it.Value()}
		k := encoder{array: e.array, key: true}
		if err := k.reflected(n.key, depth+1); err != nil {
			return At(step(n.key.Interface()), err)
		}
		if n.form = k.b; n.key.Kind() == reflect.String {
			n.text = n.key.String()
		}
		entries = append(entries, n)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.text, b.text), bytes.Compare(a.form, b.form))
	})
	e.Dict(len(entries))
	for i, n := range entries {
		if i > 0 && bytes.Equal(n.form, entries[i-1].form) {
			return At(step(n.key.Interface()), Cannot("two keys of a map are the same in Python"))
		}
		e.b = append(e.b, n.form...)
		if err := e.reflected(n.value, depth+1); err != nil {
			return At(step(n.key.Interface()), err)
		}
	}
	return nil
}
