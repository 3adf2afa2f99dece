package engine

import (
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// askBuffer uses the buffer protocol; ok is false if the object does not speak it. The memory stays as
// it is until the scope ends. It is not held for longer: a held buffer makes the program's own
// operations fail (a bytearray cannot grow, a memory map not be closed), and every route keeps the
// memory there without it.
func askBuffer(g *py.GIL, o py.Object, plan *program.Plan) (a answer, ok bool, err error) {
	b, err := g.Buffer(o, py.BufferFull)
	if py.Raised(err, "TypeError") {
		return answer{}, false, nil
	}
	if err != nil {
		return answer{}, true, err
	}
	if b.Indirect {
		return answer{}, true, &core.Error{
			Kind: core.ErrLayout, Err: errors.New("the elements of the buffer are behind pointers"),
			Remedy: "copy it into an array in the program",
		}
	}
	a.addr = b.Addr
	a.spec.ReadOnly = b.ReadOnly
	a.spec.Shape, a.spec.Strides = b.Shape, b.Strides
	if (b.Shape == nil || plan.BufferLength) && b.Rank == 1 && b.ItemSize > 0 {
		a.spec.Shape = []int{b.Len / b.ItemSize}
	}
	a.buffer = b
	a.spec.DType, a.spec.Tag, err = cai.ParseFormat(b.Format, b.ItemSize)
	return a, true, err
}
