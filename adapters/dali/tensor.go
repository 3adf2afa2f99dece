package dali

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kind is what an object is to DALI.
type kind uint8

const (
	foreign    kind = iota // not DALI's
	tensor                 // one sample, or a batch in one piece
	batch                  // the samples of one output
	lazyTensor             // the dynamic mode's tensor
	lazyBatch              // the dynamic mode's batch
)

// kindOf goes by the names of classes, since the modules of the dynamic mode may not be imported, and
// those of the others have changed.
func kindOf(g *py.GIL, o py.Object) kind {
	for _, name := range g.MRO(o) {
		rest, ok := strings.CutPrefix(name, "nvidia.dali.")
		if !ok {
			continue
		}
		lazy := strings.Contains(rest, ".dynamic.")
		switch class := rest[strings.LastIndexByte(rest, '.')+1:]; {
		case class == "TensorCPU" || class == "TensorGPU":
			return tensor
		case class == "TensorListCPU" || class == "TensorListGPU":
			return batch
		case class == "Tensor" && lazy:
			return lazyTensor
		case class == "Batch" && lazy:
			return lazyBatch
		}
	}
	return foreign
}

// facts are those about one tensor or batch on which quirks depend.
type facts struct {
	kind  kind
	dense bool   // a batch in one piece, of samples of one shape
	dtype string // "FLOAT"; "" for a lazy batch
}

func look(g *py.GIL, k kind, o py.Object) (*facts, error) {
	f := &facts{kind: k}
	if k == lazyBatch {
		return f, nil
	}
	if k == batch {
		dense, err := g.CallMethod(o, "is_dense_tensor", nil, nil)
		if err != nil {
			return nil, err
		}
		if f.dense, err = g.Bool(dense); err != nil {
			return nil, err
		}
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	if k == lazyTensor { // which has types of its own
		if dtype, err = g.Attr(dtype, "type_id"); err != nil {
			return nil, err
		}
	}
	name, err := g.Attr(dtype, "name")
	if err != nil {
		return nil, err
	}
	f.dtype, err = g.Text(name)
	return f, err
}

// isNumber tells the types of numbers and truth values from those of DALI's own enumerations, layouts,
// texts and Python objects.
func (f *facts) isNumber() bool {
	switch strings.TrimRight(f.dtype, "0123456789") {
	case "", "BOOL", "FLOAT", "INT", "UINT":
		return true
	default:
		return false
	}
}
