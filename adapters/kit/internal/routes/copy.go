package routes

import (
	"context"
	"errors"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

const (
	copyChunk = 8 << 20 // bytes between two looks at the context
	maxIovecs = 1024    // IOV_MAX of Linux
	copySlack = 4 << 10 // a copy may be this much larger than twice its elements
)

// iovec is struct iovec with an address that Go's collector does not follow: the memory is not Go's.
type iovec struct {
	base uintptr
	n    uintptr
}

// copyPlan says how an array is copied: its whole extent, or only its elements.
type copyPlan struct {
	lo     uintptr
	size   int64       // bytes of the copy
	layout core.Layout // of the copy; its offset counts from the copy's first byte
	axes   []axis      // nil: the extent [lo, lo+size) as it is
	run    int         // bytes that lie together, with axes
	addr   uintptr     // of element 0, with axes
}

type axis struct{ extent, stride int }

// planCopy keeps an array's strides, and copies its extent, where that is at most twice the size of
// the elements; else the copy is packed in row-major order. Axes that repeat elements stay so.
func planCopy(a Array) (copyPlan, error) {
	lo, n, first, err := a.extent()
	if err != nil {
		return copyPlan{}, err
	}
	itemsize := a.Layout.DType().Size()
	dense := int64(itemsize)
	for i := range a.Layout.Rank() {
		if itemsize > 0 && a.Layout.Stride(i) != 0 {
			dense *= int64(a.Layout.Dim(i))
		}
	}
	if itemsize == 0 || n <= 2*dense+copySlack {
		l, err := at(a.Layout, int64(first), false)
		return copyPlan{lo: lo, size: n, layout: l}, err
	}
	p := copyPlan{lo: lo, size: dense, addr: a.Addr}
	spec := a.Layout.Spec()
	spec.Offset = 0
	stride := itemsize
	for i, dim := range slices.Backward(spec.Shape) {
		if spec.Strides[i] == 0 {
			continue
		}
		spec.Strides[i] = stride
		stride *= dim
	}
	if p.layout, err = core.NewLayout(spec); err != nil {
		return copyPlan{}, err
	}
	p.axes, p.run = outerAxes(a.Layout)
	return p, nil
}

// planStaging is planCopy for memory that the kernel copies. It copies words of 8 bytes, and what is left at the end byte by byte on many CPUs:
// of a number there that the program writes meanwhile, it could copy a half. So the extent is one of whole words, which are in the same page.
// Numbers that do not lie where their type wants them are copied to where it does.
func planStaging(a Array) (copyPlan, error) {
	const word = 8
	p, err := planCopy(a)
	size := a.Layout.DType().Size()
	number := uintptr(min(size&-size, word))
	before := p.lo % word
	if err != nil || p.axes != nil || p.size == 0 || number <= 1 || before%number != 0 {
		return p, err
	}
	p.lo -= before
	p.size = (p.size + int64(before) + word - 1) / word * word
	p.layout, err = at(p.layout, int64(p.layout.Offset())+int64(before), false)
	return p, err
}

// outerAxes gives the axes over which runs of contiguous bytes repeat.
func outerAxes(l core.Layout) (axes []axis, run int) {
	run = l.DType().Size()
	for i := range l.Rank() {
		if l.Dim(i) > 1 && l.Stride(i) != 0 {
			axes = append(axes, axis{l.Dim(i), l.Stride(i)})
		}
	}
	for len(axes) > 0 {
		last := axes[len(axes)-1]
		if last.stride != run {
			break
		}
		run *= last.extent
		axes = axes[:len(axes)-1]
	}
	return axes, run
}

// writer takes what lies at v, to offset. The kernel reads the memory, so that what is not there is EFAULT, and not a fault.
type writer func(v []iovec, offset int64) (n uintptr, err error)

// writeTo copies to offset.
func (p copyPlan) writeTo(ctx context.Context, write writer, offset int64) error {
	if p.axes == nil {
		return write.extent(ctx, offset, p.lo, p.size)
	}
	batch := make([]iovec, 0, min(maxIovecs, p.size/int64(p.run)))
	var written, pending int64
	index := make([]int, len(p.axes))
	for addr, more := p.addr, true; more; {
		batch = append(batch, iovec{addr, uintptr(p.run)})
		pending += int64(p.run)
		addr, more = p.next(index, addr)
		if more && len(batch) < cap(batch) && pending < copyChunk {
			continue
		}
		if err := write.vector(ctx, offset+written, batch); err != nil {
			return err
		}
		written += pending
		batch, pending = batch[:0], 0
	}
	return nil
}

// next moves on to the next run in row-major order.
func (p copyPlan) next(index []int, addr uintptr) (uintptr, bool) {
	for i, a := range slices.Backward(p.axes) {
		index[i]++
		addr += uintptr(a.stride)
		if index[i] < a.extent {
			return addr, true
		}
		addr -= uintptr(a.extent * a.stride)
		index[i] = 0
	}
	return addr, false
}

func (w writer) extent(ctx context.Context, offset int64, addr uintptr, n int64) error {
	for n > 0 {
		chunk := []iovec{{addr, uintptr(min(n, copyChunk))}}
		if err := w.vector(ctx, offset, chunk); err != nil {
			return err
		}
		done := min(n, copyChunk)
		n, offset, addr = n-done, offset+done, addr+uintptr(done)
	}
	return nil
}

// vector writes all of v, which it uses up.
func (w writer) vector(ctx context.Context, offset int64, v []iovec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(v) > 0 {
		n, err := w(v, offset)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EFAULT):
			return pointerError(v[0].base, "%d bytes cannot be read there", v[0].n)
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		}
		offset += int64(n)
		for n > 0 && n >= v[0].n {
			n -= v[0].n
			v = v[1:]
		}
		if n > 0 {
			v[0].base += n
			v[0].n -= n
		}
	}
	return nil
}
