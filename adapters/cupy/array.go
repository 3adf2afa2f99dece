package cupy

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// array holds the facts about one array on which quirks depend.
type array struct {
	dtypes.NumPy
	sparse    string // the class of a sparse matrix: "csr_matrix"
	oddStride bool   // a stride is not a multiple of the item size
	backwards bool   // a stride is negative
}

// isSparse goes by the names of classes, since cupyx.scipy.sparse may not be imported.
func isSparse(g *py.GIL, o py.Object) bool {
	return slices.ContainsFunc(g.MRO(o), func(name string) bool {
		return strings.HasPrefix(name, "cupyx.scipy.sparse.")
	})
}

func look(g *py.GIL, o py.Object) (*array, error) {
	a := new(array)
	if isSparse(g, o) {
		name := g.TypeName(o)
		a.sparse = name[strings.LastIndexByte(name, '.')+1:]
		return a, nil
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	if a.NumPy, err = dtypes.Look(g, dtype); err != nil {
		return nil, err
	}
	strides, err := g.Attr(o, "strides")
	if err != nil {
		return nil, err
	}
	items, err := g.TupleItems(strides)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		stride, err := g.Int64(item)
		if err != nil {
			return nil, err
		}
		a.backwards = a.backwards || stride < 0
		a.oddStride = a.oddStride || a.Size > 0 && stride%int64(a.Size) != 0
	}
	return a, nil
}
