package pyarrow

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kind is what an object is to PyArrow.
type kind uint8

const (
	foreign kind = iota // not PyArrow's, or no data
	flat                // an array
	chunked             // arrays one after another
	columns             // a table or a record batch
	scalar              // one element of an array
	tensor              // with any number of axes
	buffer              // bytes
)

var kinds = map[string]kind{
	"Array": flat, "ChunkedArray": chunked, "Table": columns, "RecordBatch": columns,
	"Scalar": scalar, "Tensor": tensor, "Buffer": buffer,
}

func kindOf(g *py.GIL, o py.Object) kind {
	for _, name := range g.MRO(o) {
		if class, ok := strings.CutPrefix(name, "pyarrow.lib."); ok && kinds[class] != foreign {
			return kinds[class]
		}
	}
	return foreign
}

// array holds the facts about one object on which quirks depend.
type array struct {
	kind   kind
	class  string    // the last name of the object's type
	dtype  string    // "double", of arrays
	nulls  int64     // elements that are missing
	chunks int64     // of a chunked array
	first  py.Object // the number 0
}

func look(g *py.GIL, k kind, o py.Object) (*array, error) {
	class := g.TypeName(o)
	a := &array{kind: k, class: class[strings.LastIndexByte(class, '.')+1:]}
	if k != flat && k != chunked {
		return a, nil
	}
	dtype, err := g.Attr(o, "type")
	if err != nil {
		return nil, err
	}
	if a.dtype, err = g.Str(dtype); err != nil {
		return nil, err
	}
	if a.nulls, err = number(g, o, "null_count"); err != nil || k == flat {
		return a, err
	}
	if a.first, err = g.NewInt(0); err != nil {
		return nil, err
	}
	a.chunks, err = number(g, o, "num_chunks")
	return a, err
}

func number(g *py.GIL, o py.Object, name string) (int64, error) {
	v, err := g.Attr(o, name)
	if err != nil {
		return 0, err
	}
	return g.Int64(v)
}

// isArray tells arrays, in one piece or several, from the rest.
func (a *array) isArray() bool { return a.kind == flat || a.kind == chunked }

// isNumber tells the types that DLPack has.
func (a *array) isNumber() bool {
	return slices.Contains([]string{
		"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double",
	}, a.dtype)
}

// isTime tells the types that are numbers with a unit.
func (a *array) isTime() bool {
	name, _, _ := strings.Cut(a.dtype, "[")
	return slices.Contains([]string{"timestamp", "duration", "time32", "time64", "date32", "date64"}, name)
}
