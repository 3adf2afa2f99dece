package program

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// askCUDAInterface refuses what has a CUDA array interface: the memory behind it is a GPU's, or may be.
func askCUDAInterface(g *py.GIL, o py.Object) (answer, bool, error) {
	_, ok, err := g.AttrOK(o, "__cuda_array_interface__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	return answer{}, true, notOnHost("a GPU")
}

// askArrayInterface reads __array_interface__; ok is false if the object has none. The memory lives as
// long as the object or the dictionary does.
func askArrayInterface(g *py.GIL, o py.Object, plan *Plan) (a answer, ok bool, err error) {
	dict, ok, err := plan.attribute(g, o, "__array_interface__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	if !g.IsDict(dict) {
		return answer{}, true, &core.Error{
			Kind: core.ErrProtocol,
			Err:  fmt.Errorf("__array_interface__ is %s, expected dict", g.TypeName(dict)),
		}
	}
	entries, err := readDict(g, dict)
	if err != nil {
		return answer{}, true, err
	}
	d, room, err := entries.describe(g, o)
	if err != nil {
		return answer{}, true, err
	}
	if plan.DType != core.Invalid {
		d.Typestr, d.Descr = withoutType(d.Typestr), ""
	}
	array, err := cai.ReadHost(d)
	if err != nil {
		return answer{}, true, err
	}
	if err := room.check(array); err != nil {
		return answer{}, true, err
	}
	a = answer{spec: array.Spec, addr: array.Addr}
	if plan.Hold {
		a.holds = []hold{{object: g.Keep(o)}, {object: g.Keep(dict)}}
	}
	return a, true, nil
}

// withoutType makes a typestr of the same size that says nothing else, for elements of which more is
// known: NumPy writes "<f1" for one of the types of eight bits, which is no type at all.
func withoutType(typestr string) string {
	if len(typestr) < 3 {
		return typestr // and an error
	}
	return "|V" + typestr[2:]
}

// interfaceDict holds the entries of an array interface that are not None.
type interfaceDict map[string]py.Object

func readDict(g *py.GIL, dict py.Object) (interfaceDict, error) {
	items, err := g.DictItems(dict)
	if err != nil {
		return nil, err
	}
	entries := make(interfaceDict)
	for key, value := range items {
		if !g.IsStr(key) || g.IsNone(value) {
			continue
		}
		name, err := g.Text(key)
		if err != nil {
			return nil, err
		}
		entries[name] = value
	}
	return entries, nil
}

// room is the memory that a data entry grants, if it is a buffer and not a bare pointer.
type room struct {
	known bool
	addr  uintptr
	size  int
}

func (r room) check(a cai.Array) error {
	l, err := core.NewLayout(a.Spec)
	if err != nil || !r.known || l.Len() == 0 {
		return err
	}
	lo, hi := l.Span()
	if first := int(a.Addr - r.addr); first+lo < 0 || first+hi > r.size {
		return &core.Error{Kind: core.ErrPointer, Err: fmt.Errorf(
			"the array takes bytes %d to %d of a buffer of %d", first+lo, first+hi, r.size,
		)}
	}
	return nil
}

func (e interfaceDict) describe(g *py.GIL, o py.Object) (d cai.Dict, r room, err error) {
	if d.Shape, err = e.ints(g, "shape"); err != nil {
		return d, r, err
	}
	if _, d.HasStrides = e["strides"]; d.HasStrides {
		if d.Strides, err = e.ints(g, "strides"); err != nil {
			return d, r, err
		}
	}
	if d.Typestr, err = e.text(g, "typestr"); err != nil {
		return d, r, err
	}
	if descr, ok := e["descr"]; ok {
		if d.Descr, err = g.Repr(descr); err != nil {
			return d, r, err
		}
	}
	version, err := e.int(g, "version")
	if err != nil {
		return d, r, err
	}
	d.Version = int(version)
	_, d.Mask = e["mask"]
	r, err = e.data(g, o, &d)
	return d, r, err
}

// data reads where the elements are: a pointer and whether it is read-only, an object with a buffer,
// or nothing, which means the buffer of o itself.
func (e interfaceDict) data(g *py.GIL, o py.Object, d *cai.Dict) (room, error) {
	data, ok := e["data"]
	if ok && g.IsTuple(data) {
		items, err := g.TupleItems(data)
		if err != nil {
			return room{}, err
		}
		if len(items) != 2 {
			return room{}, entryError("data", "a tuple of %d items, expected 2", len(items))
		}
		if !g.IsNone(items[0]) {
			if d.Data, err = g.Uint64(items[0]); err != nil {
				return room{}, err
			}
		}
		d.ReadOnly, err = g.Bool(items[1])
		return room{}, err
	}
	if !ok {
		data = o
	}
	var err error
	if d.Offset, err = e.int(g, "offset"); err != nil {
		return room{}, err
	}
	b, err := g.Buffer(data, 0)
	if err != nil {
		return room{}, err
	}
	d.Data, d.ReadOnly = uint64(b.Addr), b.ReadOnly
	return room{known: true, addr: b.Addr, size: b.Len}, nil
}

func (e interfaceDict) ints(g *py.GIL, name string) ([]int64, error) {
	o, ok := e[name]
	if !ok {
		return nil, entryError(name, "missing")
	}
	var items []py.Object
	var err error
	switch {
	case g.IsTuple(o):
		items, err = g.TupleItems(o)
	case g.IsList(o):
		items, err = g.ListItems(o)
	default:
		return nil, entryError(name, "%s, expected tuple", g.TypeName(o))
	}
	if err != nil {
		return nil, err
	}
	if len(items) > core.MaxRank {
		return nil, &core.Error{
			Kind: core.ErrLayout,
			Err:  fmt.Errorf("%d axes; at most %d are supported", len(items), core.MaxRank),
		}
	}
	ints := make([]int64, len(items))
	for i, item := range items {
		if ints[i], err = g.Int64(item); err != nil {
			return nil, err
		}
	}
	return ints, nil
}

// int reads an entry that is 0 if it is missing.
func (e interfaceDict) int(g *py.GIL, name string) (int64, error) {
	o, ok := e[name]
	if !ok {
		return 0, nil
	}
	return g.Int64(o)
}

func (e interfaceDict) text(g *py.GIL, name string) (string, error) {
	o, ok := e[name]
	if !ok {
		return "", entryError(name, "missing")
	}
	return g.Text(o)
}

func entryError(name, format string, args ...any) error {
	return &core.Error{
		Kind: core.ErrProtocol,
		Err:  fmt.Errorf("__array_interface__[%q]: "+format, append([]any{name}, args...)...),
	}
}
