package program

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// askBuffer uses the buffer protocol; ok is false if the object does not speak it. The memory stays as
// it is until the scope ends. It is not held for longer: a held buffer makes the program's own
// operations fail (a bytearray cannot grow, a memory map not be closed), and every route keeps the
// memory there without it.
func askBuffer(g *py.GIL, o py.Object, plan *Plan) (a answer, ok bool, err error) {
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
	if n := elements(a.spec.Shape); b.ItemSize > 0 && n > uint64(b.Len/b.ItemSize) {
		return answer{}, true, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf(
			"the buffer says that it has %d bytes, and %d elements of %d", b.Len, n, b.ItemSize,
		)}
	}
	a.spec.DType, a.spec.Tag, err = cai.ParseFormat(b.Format, b.ItemSize)
	return a, true, err
}

// elements gives how many elements a shape has, or as many as there cannot be.
func elements(shape []int) uint64 {
	n := uint64(1)
	for _, dim := range shape {
		high, low := bits.Mul64(n, uint64(max(dim, 0)))
		if n = low; high != 0 {
			return math.MaxUint64
		}
	}
	return n
}
