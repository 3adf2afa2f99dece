package transfer

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// sparse is how many times the bytes of its elements a stretch of memory must have for its elements to
// be fetched in rows, rather than all of it.
const sparse = 4

// piece is a part of an array that is copied at once: in one of three ways.
type piece struct {
	// A stretch of memory, lo to hi, that is all elements, if layout is nil.
	lo, hi int
	// height rows of width bytes each, from lo on and pitch bytes apart, if height is not 0.
	width, pitch, height int
	// Or elements somewhere in the stretch, which are gathered from a copy of it.
	layout *core.Layout

	// When it is sent: where its elements are in what is sent. nil: they follow those of the last piece.
	from *core.Layout
}

// size is the number of bytes of the elements.
func (p *piece) size() int {
	switch {
	case p.height > 0:
		return p.width * p.height
	case p.layout != nil:
		return int(p.layout.NBytes())
	default:
		return p.hi - p.lo
	}
}

// fetch lets the stream copy the piece to pinned memory.
func (p *piece) fetch(dst, base uintptr, s driver.Stream) error {
	src := base + uintptr(p.lo)
	if p.height > 0 {
		return driver.MemcpyRowsAsync(dst, int64(p.width), src, int64(p.pitch), int64(p.width), int64(p.height), s)
	}
	return driver.MemcpyDtoHAsync(dst, src, int64(p.hi-p.lo), s)
}

// gather copies the elements from pinned memory.
func (p *piece) gather(ctx context.Context, dst, from []byte) error {
	if p.layout == nil {
		copy(dst, from)
		return nil
	}
	return gather(ctx, dst, from, *p.layout, p.lo)
}

// gather copies elements in row-major order; the first byte of from is byte number skip of the layout's
// memory.
func gather(ctx context.Context, dst, from []byte, l core.Layout, skip int) error {
	spec := l.Spec()
	spec.Device, spec.Offset = core.Device{}, spec.Offset-skip
	l, err := core.NewLayout(spec)
	if err != nil {
		return err
	}
	v, err := core.NewView(l, pinned(from), nil)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it owns nothing
	_, err = core.CopyBytes(ctx, dst, v)
	return err
}

// fill takes the elements from all that is sent to pinned memory, and gives the rest of what is sent.
func (p *piece) fill(ctx context.Context, dst, src []byte) (rest []byte, err error) {
	n := p.size()
	if p.from != nil {
		return src, gather(ctx, dst[:n], src, *p.from, 0)
	}
	copy(dst, src[:n])
	return src[n:], nil
}

// send lets the stream copy the piece from pinned memory.
func (p *piece) send(base, src uintptr, s driver.Stream) error {
	dst := base + uintptr(p.lo)
	if p.height > 0 {
		return driver.MemcpyRowsAsync(dst, int64(p.pitch), src, int64(p.width), int64(p.width), int64(p.height), s)
	}
	return driver.MemcpyHtoDAsync(dst, src, int64(p.hi-p.lo), s)
}

// fetches divides an array into pieces that take at most limit bytes of pinned memory, in row-major
// order.
func fetches(l core.Layout, limit int) iter.Seq[piece] {
	return func(yield func(piece) bool) { divide(l, nil, limit, yield) }
}

// sends divides an array into pieces to be written, of which none touches what is between the elements.
// They come in the order of their addresses: in any other there could be as many as elements.
func sends(l core.Layout, limit int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		if l.Contiguous() {
			divide(l, nil, limit, yield)
			return
		}
		to, from := byAddress(l)
		divide(to, &from, limit, yield)
	}
}

// byAddress reorders axes, and turns them around, so that addresses grow as much as they can. The other
// layout is that of the same elements in a dense array that was reordered with it.
func byAddress(l core.Layout) (to, from core.Layout) {
	to, from = l, must(core.NewLayout(core.LayoutSpec{DType: l.DType(), Shape: l.Shape()}))
	axes := make([]int, l.Rank())
	for axis := range axes {
		axes[axis] = axis
		if l.Stride(axis) < 0 {
			to, from = must(to.Step(axis, -1)), must(from.Step(axis, -1))
		}
	}
	slices.SortStableFunc(axes, func(a, b int) int { return cmp.Compare(to.Stride(b), to.Stride(a)) })
	return must(to.Transpose(axes...)), must(from.Transpose(axes...))
}

// must is for what cannot fail: the same elements in another order, or some of them, of types that do
// not share bytes.
func must(l core.Layout, err error) core.Layout {
	if err != nil {
		panic(err)
	}
	return l
}

func divide(l core.Layout, from *core.Layout, limit int, yield func(piece) bool) bool {
	lo, hi := l.Span()
	size := int(l.NBytes())
	switch {
	case size == 0:
		return true
	case l.Contiguous() && from == nil:
		for ; hi-lo > limit; lo += limit {
			if !yield(piece{lo: lo, hi: lo + limit}) {
				return false
			}
		}
		return yield(piece{lo: lo, hi: hi})
	case l.Contiguous() && size <= limit:
		return yield(piece{lo: lo, hi: hi, from: from})
	case from == nil && hi-lo <= limit:
		return yield(piece{lo: lo, hi: hi, layout: &l})
	case size <= limit && (from != nil || (hi-lo)/sparse > size):
		if p, ok := rows(l); ok {
			p.from = from
			return yield(p)
		}
	}
	axis := 0
	for l.Dim(axis) == 1 {
		axis++
	}
	middle := l.Dim(axis) / 2
	for _, half := range [2][2]int{{0, middle}, {middle, l.Dim(axis)}} {
		part, fromPart := must(l.Sub(axis, half[0], half[1])), from
		if from != nil {
			fromPart = new(must(from.Sub(axis, half[0], half[1])))
		}
		if !divide(part, fromPart, limit, yield) {
			return false
		}
	}
	return true
}

// rows describes an array as rows that are equally far apart, if it is so.
func rows(l core.Layout) (piece, bool) {
	p := piece{width: l.DType().Size(), height: 1}
	p.lo, _ = l.Span()
	for axis := l.Rank() - 1; axis >= 0; axis-- {
		dim, stride := l.Dim(axis), l.Stride(axis)
		switch {
		case dim == 1:
		case p.height == 1 && stride == p.width:
			p.width *= dim
		case p.height == 1 && stride > p.width && stride <= math.MaxInt32:
			p.pitch, p.height = stride, dim
		case p.height > 1 && stride == p.pitch*p.height:
			p.height *= dim
		default:
			return piece{}, false
		}
	}
	return p, true
}
