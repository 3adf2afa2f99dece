package cai

import (
	"math/bits"

	"github.com/ndbridge/ndbridge/core"
)

// Buffer holds the fields of a Py_buffer as the exporter set them: plain data that nobody has checked.
type Buffer struct {
	Buf        uint64 // address of the element with index [0, ..., 0], also with negative strides
	Len        int64  // bytes of all elements, dense
	ItemSize   int64
	Format     string // "" for NULL
	Shape      []int64
	HasStrides bool // false if strides is NULL
	Strides    []int64
	Indirect   bool // suboffsets is not NULL and has one that is not negative
	ReadOnly   bool
}

// ReadBuffer reads what Python's buffer protocol says about an array.
//
// Errors wrap core.ErrDType for element types that cannot cross, core.ErrLayout for shapes and strides that make no
// sense and for indirect buffers (which are not strided memory), core.ErrPointer for a pointer that cannot be right, and
// core.ErrProtocol if the length is not the size of the elements.
func ReadBuffer(b Buffer) (Array, error) {
	if b.Indirect {
		return Array{}, readError(core.ErrLayout, "the buffer is indirect: it has suboffsets")
	}
	if b.ItemSize < 1 || b.ItemSize > 65535 {
		return Array{}, readError(core.ErrDType, "elements of %d bytes; supported are 1 to 65535", b.ItemSize)
	}
	dtype, tag, err := ParseFormat(b.Format, int(b.ItemSize))
	if err != nil {
		return Array{}, err
	}
	a := Array{Spec: core.LayoutSpec{DType: dtype, ReadOnly: b.ReadOnly, Tag: tag}}
	if a.Spec.Shape, a.Spec.Strides, err = geometry(b.Shape, b.Strides, b.HasStrides); err != nil {
		return Array{}, err
	}
	size, fits := uint64(b.ItemSize), true
	for _, dim := range b.Shape {
		hi, lo := bits.Mul64(size, uint64(dim))
		size, fits = lo, fits && hi == 0 && dim >= 0
	}
	if !fits || size != uint64(b.Len) {
		return Array{}, readError(core.ErrProtocol, "%d bytes are not %v elements of %d",
			b.Len, b.Shape, b.ItemSize)
	}
	a.Addr, err = address(a.Spec.Shape, b.Buf, 0)
	return a, err
}
