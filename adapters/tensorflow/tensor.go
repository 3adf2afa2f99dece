package tensorflow

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kind is what an object is to TensorFlow.
type kind uint8

const (
	foreign       kind = iota // not TensorFlow's
	eager                     // a tensor with elements
	variable                  // has a tensor for its value
	kerasVariable             // has a variable
	symbolic                  // stands for a tensor in a graph
	sparse                    // indices and values
	ragged                    // rows of different lengths
)

// kinds lists classes by their last names: the modules that they come from have changed.
var kinds = map[string]kind{
	"EagerTensor": eager, "BaseResourceVariable": variable, "SymbolicTensor": symbolic,
	"SparseTensor": sparse, "IndexedSlices": sparse, "RaggedTensor": ragged,
}

func kindOf(g *py.GIL, o py.Object) kind {
	keras := false
	for _, name := range g.MRO(o) {
		top, rest, _ := strings.Cut(name, ".")
		class := rest[strings.LastIndexByte(rest, '.')+1:]
		switch {
		case top == "keras" && class == "Variable":
			keras = true
		case top == "tensorflow" && keras:
			return kerasVariable
		case top == "tensorflow" && kinds[class] != foreign:
			return kinds[class]
		}
	}
	return foreign
}

// tensor holds the facts about one object on which quirks depend.
type tensor struct {
	kind  kind
	class string // the last name of the object's type
	dtype string // "float32", of what has elements
}

func look(g *py.GIL, k kind, o py.Object) (*tensor, error) {
	class := g.TypeName(o)
	t := &tensor{kind: k, class: class[strings.LastIndexByte(class, '.')+1:]}
	if k != eager && k != variable {
		return t, nil
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	name, err := g.Attr(dtype, "name")
	if err != nil {
		return nil, err
	}
	t.dtype, err = g.Text(name)
	return t, err
}

// hasMemory tells types whose elements are numbers in memory from strings and handles.
func (t *tensor) hasMemory() bool {
	return t.dtype != "string" && t.dtype != "resource" && t.dtype != "variant"
}

// isPacked tells types that DLPack has no name for.
func (t *tensor) isPacked() bool {
	return strings.HasPrefix(t.dtype, "q") || t.dtype == "int4" || t.dtype == "uint4" ||
		t.dtype == "int2" || t.dtype == "uint2"
}
