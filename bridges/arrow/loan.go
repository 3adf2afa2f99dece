package arrow

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ndbridge/ndbridge/core"
)

// borrow gives the memory that the elements of v span as a buffer. The memory stays until the last user of the buffer has
// released it.
func borrow(op string, v *core.View) (*memory.Buffer, error) {
	from, _, release, err := v.Acquire()
	if err != nil {
		return nil, err
	}
	if v.Len() == 0 {
		release()
		return memory.NewBufferBytes([]byte{}), nil
	}
	all := from.Bytes()
	if all == nil {
		release()
		return nil, &core.Error{
			Op: op, Object: v.Name(), Kind: core.ErrDevice, Err: fmt.Errorf("the host cannot read memory of %v", v.Layout().Device()), Remedy: "use Copy",
		}
	}
	lo, hi := v.Layout().Span()
	if size := uintptr(v.DType().Size()); (from.Addr()+uintptr(lo))%size != 0 {
		release()
		return nil, &core.Error{Op: op, Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("%v elements are not aligned", v.DType()), Remedy: "use Copy"}
	}
	return memory.NewBufferWithAllocator(all[lo:hi:hi], loan(release)), nil
}

// loan is an allocator of one buffer that it has not allocated: to free it ends the loan. Buffers of loans cannot be changed, so
// Arrow does not ask for more; should it, Go's memory serves.
type loan func()

// Allocate implements memory.Allocator.
func (loan) Allocate(size int) []byte { return make([]byte, size) }

// Reallocate implements memory.Allocator.
func (loan) Reallocate(size int, b []byte) []byte {
	grown := make([]byte, size)
	copy(grown, b)
	return grown
}

// Free implements memory.Allocator.
func (l loan) Free([]byte) { l() }
