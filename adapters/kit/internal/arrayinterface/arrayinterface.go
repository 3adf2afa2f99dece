// Package arrayinterface takes the dictionaries of NumPy's array interface and of the CUDA Array
// Interface out of Python.
package arrayinterface

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// Read reads the dictionary that is o's array interface. What it says is unchecked, but for the types
// of its entries. The entries, and the buffer behind them, last as long as the scope.
func Read(g *py.GIL, o, dict py.Object) (d cai.Dict, r Room, err error) {
	e, err := readEntries(g, dict, "__array_interface__")
	if err != nil {
		return d, r, err
	}
	if d, err = e.describe(g); err != nil {
		return d, r, err
	}
	r, err = e.data(g, o, &d)
	return d, r, err
}

// ReadCUDA reads a dictionary of the CUDA Array Interface. What it says is unchecked, but for the types
// of its entries, which last as long as the scope.
func ReadCUDA(g *py.GIL, dict py.Object) (d cai.Dict, err error) {
	e, err := readEntries(g, dict, "__cuda_array_interface__")
	if err != nil {
		return d, err
	}
	if d, err = e.describe(g); err != nil {
		return d, err
	}
	if _, d.Stream.Given = e.values["stream"]; d.Stream.Given {
		if d.Stream.Handle, err = e.int(g, "stream"); err != nil {
			return d, err
		}
	}
	data, ok := e.values["data"]
	if !ok || !g.IsTuple(data) {
		return d, e.errorf("data", "missing, or no tuple")
	}
	return d, e.pointer(g, data, &d)
}

// entries holds the entries that are not None.
type entries struct {
	of     string // the dictionary's name
	values map[string]py.Object
}

func readEntries(g *py.GIL, dict py.Object, of string) (entries, error) {
	e := entries{of: of, values: make(map[string]py.Object)}
	if !g.IsDict(dict) {
		return e, &core.Error{
			Kind: core.ErrProtocol,
			Err:  fmt.Errorf("%s is %s, expected dict", of, g.TypeName(dict)),
		}
	}
	items, err := g.DictItems(dict)
	if err != nil {
		return e, err
	}
	for key, value := range items {
		if !g.IsStr(key) || g.IsNone(value) {
			continue
		}
		name, err := g.Text(key)
		if err != nil {
			return e, err
		}
		e.values[name] = value
	}
	return e, nil
}

// Room is the memory that a data entry grants, if it is a buffer and not a bare pointer.
type Room struct {
	known bool
	addr  uintptr
	size  int
}

// Check refuses, with core.ErrPointer, an array that is not wholly inside.
func (r Room) Check(a cai.Array) error {
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

// describe reads everything but where the elements are.
func (e entries) describe(g *py.GIL) (d cai.Dict, err error) {
	if d.Shape, err = e.ints(g, "shape"); err != nil {
		return d, err
	}
	if _, d.HasStrides = e.values["strides"]; d.HasStrides {
		if d.Strides, err = e.ints(g, "strides"); err != nil {
			return d, err
		}
	}
	if d.Typestr, err = e.text(g, "typestr"); err != nil {
		return d, err
	}
	if descr, ok := e.values["descr"]; ok {
		if d.Descr, err = g.Repr(descr); err != nil {
			return d, err
		}
	}
	version, err := e.int(g, "version")
	if err != nil {
		return d, err
	}
	d.Version = int(version)
	_, d.Mask = e.values["mask"]
	return d, nil
}

// data reads where the elements are: a pointer and whether it is read-only, an object with a buffer,
// or nothing, which means the buffer of o itself.
func (e entries) data(g *py.GIL, o py.Object, d *cai.Dict) (Room, error) {
	data, ok := e.values["data"]
	if ok && g.IsTuple(data) {
		return Room{}, e.pointer(g, data, d)
	}
	if !ok {
		data = o
	}
	var err error
	if d.Offset, err = e.int(g, "offset"); err != nil {
		return Room{}, err
	}
	b, err := g.Buffer(data, 0)
	if err != nil {
		return Room{}, err
	}
	d.Data, d.ReadOnly = uint64(b.Addr), b.ReadOnly
	return Room{known: true, addr: b.Addr, size: b.Len}, nil
}

// pointer reads a data entry that is a tuple.
func (e entries) pointer(g *py.GIL, data py.Object, d *cai.Dict) error {
	items, err := g.TupleItems(data)
	if err != nil {
		return err
	}
	if len(items) != 2 {
		return e.errorf("data", "a tuple of %d items, expected 2", len(items))
	}
	if !g.IsNone(items[0]) {
		if d.Data, err = g.Uint64(items[0]); err != nil {
			return err
		}
	}
	d.ReadOnly, err = g.Bool(items[1])
	return err
}

func (e entries) ints(g *py.GIL, name string) ([]int64, error) {
	o, ok := e.values[name]
	if !ok {
		return nil, e.errorf(name, "missing")
	}
	var items []py.Object
	var err error
	switch {
	case g.IsTuple(o):
		items, err = g.TupleItems(o)
	case g.IsList(o):
		items, err = g.ListItems(o)
	default:
		return nil, e.errorf(name, "%s, expected tuple", g.TypeName(o))
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
func (e entries) int(g *py.GIL, name string) (int64, error) {
	o, ok := e.values[name]
	if !ok {
		return 0, nil
	}
	return g.Int64(o)
}

func (e entries) text(g *py.GIL, name string) (string, error) {
	o, ok := e.values[name]
	if !ok {
		return "", e.errorf(name, "missing")
	}
	return g.Text(o)
}

func (e entries) errorf(name, format string, args ...any) error {
	return &core.Error{
		Kind: core.ErrProtocol,
		Err:  fmt.Errorf("%s[%q]: "+format, append([]any{e.of, name}, args...)...),
	}
}
