// Package arrayinterface takes the dictionary of NumPy's array interface out of Python.
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
	e, err := readEntries(g, dict)
	if err != nil {
		return d, r, err
	}
	return e.describe(g, o)
}

// entries holds the entries that are not None.
type entries map[string]py.Object

func readEntries(g *py.GIL, dict py.Object) (entries, error) {
	if !g.IsDict(dict) {
		return nil, &core.Error{
			Kind: core.ErrProtocol,
			Err:  fmt.Errorf("__array_interface__ is %s, expected dict", g.TypeName(dict)),
		}
	}
	items, err := g.DictItems(dict)
	if err != nil {
		return nil, err
	}
	e := make(entries)
	for key, value := range items {
		if !g.IsStr(key) || g.IsNone(value) {
			continue
		}
		name, err := g.Text(key)
		if err != nil {
			return nil, err
		}
		e[name] = value
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

func (e entries) describe(g *py.GIL, o py.Object) (d cai.Dict, r Room, err error) {
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
func (e entries) data(g *py.GIL, o py.Object, d *cai.Dict) (Room, error) {
	data, ok := e["data"]
	if ok && g.IsTuple(data) {
		items, err := g.TupleItems(data)
		if err != nil {
			return Room{}, err
		}
		if len(items) != 2 {
			return Room{}, entryError("data", "a tuple of %d items, expected 2", len(items))
		}
		if !g.IsNone(items[0]) {
			if d.Data, err = g.Uint64(items[0]); err != nil {
				return Room{}, err
			}
		}
		d.ReadOnly, err = g.Bool(items[1])
		return Room{}, err
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

func (e entries) ints(g *py.GIL, name string) ([]int64, error) {
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
func (e entries) int(g *py.GIL, name string) (int64, error) {
	o, ok := e[name]
	if !ok {
		return 0, nil
	}
	return g.Int64(o)
}

func (e entries) text(g *py.GIL, name string) (string, error) {
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
