package numpy

import (
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// blockTable is what a DataFrame has of columns.
type blockTable struct {
	columns py.Object   // the Index
	labels  []py.Object // of the columns
	blocks  []block
}

// block is columns that lie in one array.
type block struct {
	placement py.Object
	places    []int64 // which of the columns they are
}

// errTorn says that the program was seen while it changes a table.
var errTorn = fmt.Errorf("%w: the table is just being changed", program.ErrGivenAway)

// tableOf reads where the columns of a manager of blocks are; nil: it is none that is known.
func tableOf(g *py.GIL, manager py.Object) (*blockTable, error) {
	axes, ok := get(g, manager, "axes")
	if !ok || !g.IsList(axes) {
		return nil, nil //nolint:nilnil // see above
	}
	t := &blockTable{}
	if t.columns, ok = g.Sequence(axes, 0); !ok {
		return nil, nil //nolint:nilnil // see above
	}
	var err error
	if t.labels, err = labels(g, t.columns); err != nil || t.labels == nil {
		return nil, err
	}
	blocks, ok := get(g, manager, "blocks")
	if !ok || !g.IsTuple(blocks) {
		return nil, nil //nolint:nilnil // see above
	}
	all, err := g.TupleItems(blocks)
	if err != nil {
		return nil, err
	}
	seen := 0
	for _, o := range all {
		var b block
		if b.placement, ok = get(g, o, "_mgr_locs"); !ok {
			return nil, nil //nolint:nilnil // see above
		}
		if b.places, err = places(g, b.placement); err != nil {
			return nil, err
		}
		seen += len(b.places)
		t.blocks = append(t.blocks, b)
	}
	if seen != len(t.labels) {
		return nil, errTorn
	}
	return t, nil
}

// get gives what a getter in C gives.
func get(g *py.GIL, o py.Object, name string) (py.Object, bool) {
	key, err := g.Interned(name)
	if err != nil {
		return 0, false
	}
	return g.Follow(o, py.Step{Kind: py.StepGetter, Class: g.Type(o), Key: key})
}

// labels gives the labels of an Index; nil: they cannot be had without code of Python's.
func labels(g *py.GIL, index py.Object) ([]py.Object, error) {
	own, ok := g.OwnDict(index)
	if !ok {
		return nil, nil
	}
	of := func(dict py.Object, name string) (py.Object, bool) {
		key, err := g.Interned(name)
		if err != nil {
			return 0, false
		}
		return g.Follow(dict, py.Step{Kind: py.StepKey, Class: g.Type(dict), Key: key})
	}
	data, ok := of(own, "_range")
	method := "tolist"
	if !ok {
		if data, ok = of(own, "_data"); !ok {
			return nil, nil
		}
		if inner, ok := get(g, data, "_ndarray"); ok {
			data = inner
		} else if dict, ok := g.OwnDict(data); ok {
			for _, name := range []string{"_ndarray", "_pa_array"} {
				if inner, ok := of(dict, name); ok {
					data = inner
				}
			}
		}
	}
	var list py.Object
	var err error
	switch class := g.TypeName(data); class {
	case "range":
		return rangeItems(g, data)
	case "numpy.ndarray":
	case "pyarrow.lib.ChunkedArray":
		method = "to_pylist"
	default:
		return nil, nil
	}
	if list, err = g.CallMethod(data, method, nil, nil); err != nil || !g.IsList(list) {
		return nil, err
	}
	items, err := g.ListItems(list)
	if items == nil {
		items = []py.Object{}
	}
	return items, err
}

func rangeItems(g *py.GIL, o py.Object) ([]py.Object, error) {
	start, step, err := bounds(g, o)
	if err != nil {
		return nil, err
	}
	n, err := g.Len(o)
	items := make([]py.Object, 0, n)
	for i := range n {
		item, err := g.NewInt(start + int64(i)*step)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, err
}

// bounds gives the numbers that a range begins with and goes on by.
func bounds(g *py.GIL, o py.Object) (start, step int64, err error) {
	for name, to := range map[string]*int64{"start": &start, "step": &step} {
		v, err := g.Attr(o, name)
		if err != nil {
			return 0, 0, err
		}
		if *to, err = g.Int64(v); err != nil {
			return 0, 0, err
		}
	}
	return start, step, nil
}

// places reads a BlockPlacement.
func places(g *py.GIL, placement py.Object) (all []int64, err error) {
	array, err := g.Attr(placement, "as_array")
	if err != nil {
		return nil, err
	}
	list, err := g.CallMethod(array, "tolist", nil, nil)
	if err != nil {
		return nil, err
	}
	items, err := g.ListItems(list)
	for _, o := range items {
		n, err := g.Int64(o)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, err
}

// find gives the position of the one column that a step means, or -1.
func (t *blockTable) find(g *py.GIL, s names.Step) int {
	found := -1
	for i, label := range t.labels {
		if !isLabel(g, label, s) {
			continue
		}
		if found >= 0 {
			return -1 // pandas gives a table of both
		}
		found = i
	}
	return found
}

func isLabel(g *py.GIL, label py.Object, s names.Step) bool {
	if s.Kind == names.Item {
		if !g.IsInt(label) || g.IsBool(label) {
			return false
		}
		n, err := g.Int64(label)
		return err == nil && n == s.Item
	}
	if !g.IsStr(label) {
		return false
	}
	text, ok := g.NameText(label)
	return ok && text == s.Text
}

// column goes on from a manager of blocks to a column.
func (t *blockTable) column(w *way, at int) (bool, error) {
	for i, b := range t.blocks {
		row := slices.Index(b.places, int64(at))
		if row < 0 {
			continue
		}
		if !w.beside("axes", 0, t.columns) || !w.getter("blocks") || !w.item(i) || !w.beside("_mgr_locs", -1, b.placement) || !w.getter("values") {
			return false, nil
		}
		ok, err := w.values(true)
		if !ok || err != nil {
			return false, err
		}
		rank, err := w.g.Attr(w.o, "ndim")
		if err != nil {
			return false, err
		}
		n, err := w.g.Int64(rank)
		if err == nil && n == 2 {
			w.behind.Part = []names.Step{{Kind: names.Item, Item: int64(row)}}
		}
		return true, err
	}
	return false, errTorn
}
