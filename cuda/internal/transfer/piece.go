package transfer

import (
	"iter"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
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
func (p *piece) gather(dst, from []byte) error {
	if p.layout == nil {
		copy(dst, from)
		return nil
	}
	spec := p.layout.Spec()
	spec.Device, spec.Offset = core.Device{}, spec.Offset-p.lo
	l, err := core.NewLayout(spec)
	if err != nil {
		return err
	}
	v, err := core.NewView(l, pinned(from), nil)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it owns nothing
	_, err = core.CopyBytes(dst, v)
	return err
}

// send lets the stream copy the piece from pinned memory.
func (p *piece) send(base, src uintptr, s driver.Stream) error {
	dst := base + uintptr(p.lo)
	if p.height > 0 {
		return driver.MemcpyRowsAsync(dst, int64(p.pitch), src, int64(p.width), int64(p.width), int64(p.height), s)
	}
	return driver.MemcpyHtoDAsync(dst, src, int64(p.hi-p.lo), s)
}

// pieces divides an array into pieces that take at most limit bytes of pinned memory, in row-major
// order. With gather, they may be such that more than their elements is read.
func pieces(l core.Layout, limit int, gather bool) iter.Seq[piece] {
	return func(yield func(piece) bool) { divide(l, limit, gather, yield) }
}

func divide(l core.Layout, limit int, gather bool, yield func(piece) bool) bool {
	lo, hi := l.Span()
	size := int(l.NBytes())
	switch {
	case size == 0:
		return true
	case l.Contiguous():
		for ; hi-lo > limit; lo += limit {
			if !yield(piece{lo: lo, hi: lo + limit}) {
				return false
			}
		}
		return yield(piece{lo: lo, hi: hi})
	case gather && hi-lo <= limit:
		return yield(piece{lo: lo, hi: hi, layout: &l})
	case size <= limit && (!gather || (hi-lo)/sparse > size):
		if p, ok := rows(l); ok {
			return yield(p)
		}
	}
	axis := 0
	for l.Dim(axis) == 1 {
		axis++
	}
	middle := l.Dim(axis) / 2
	for _, part := range [2][2]int{{0, middle}, {middle, l.Dim(axis)}} {
		m, err := l.Sub(axis, part[0], part[1])
		if err != nil {
			panic(err) // a part of an axis; what shares bytes is contiguous
		}
		if !divide(m, limit, gather, yield) {
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
