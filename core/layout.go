package core

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// MaxRank is the largest number of axes that a Layout can have: as many as NumPy 2 and PyTorch support.
const MaxRank = 64

// LayoutSpec describes an array as a framework or another process described it: plain data that nobody has
// checked. [NewLayout] checks it.
type LayoutSpec struct {
	DType    DType
	Device   Device
	Shape    []int  // extents, outermost axis first; empty for a single element
	Strides  []int  // bytes from one element to the next along each axis, of any sign; nil: row-major
	Offset   int    // bytes from the first byte of the memory to the element with index [0, ..., 0]
	ReadOnly bool   // the framework says that the array may not be written
	Tag      string // what an Opaque element is, in the framework's own words: ">f8", "datetime64[ns]"
}

// Layout says where the elements of an array lie, relative to the first byte of a memory. [NewLayout] checks a
// Layout when it makes it, and nothing changes it afterwards. Layouts are cheap to copy and safe for concurrent
// use. The zero Layout describes nothing: it has no elements, and [NewView] refuses it.
type Layout struct { //nolint:recvcheck // made through a pointer, used as a value
	dtype      DType
	device     Device
	shape      []int // never written after NewLayout
	strides    []int // one for each axis; nil for packed types
	offset     int
	n          int // elements
	lo, hi     int // bytes touched
	contiguous bool
	readOnly   bool
	tag        string
}

// NewLayout checks a description and makes a Layout of it. It copies the slices.
//
// The error wraps ErrDType for an invalid element type, ErrDevice for an unknown device, and ErrLayout for more
// than [MaxRank] axes, a negative extent, a wrong number of strides, strides of packed elements, and sizes or
// spans beyond the range of an int. Strides may have any sign, and elements may lie before element 0: [NewView]
// proves that the span lies inside the memory.
//
// An array whose elements share memory (a broadcast axis, a sliding window) is read-only whatever the description
// says. The test is exact for every array that frameworks make by slicing, reversing, transposing or
// broadcasting dense arrays. For other strides, it counts an array whose elements interleave as one whose elements
// share memory.
func NewLayout(s LayoutSpec) (Layout, error) {
	l := Layout{
		dtype: s.DType, device: s.Device, offset: s.Offset, readOnly: s.ReadOnly, tag: s.Tag,
		shape: slices.Clone(s.Shape),
	}
	if err := l.checkSpec(s); err != nil {
		return Layout{}, err
	}
	if err := l.measure(); err != nil {
		return Layout{}, err
	}
	if s.Strides == nil || s.DType.Packed() {
		l.strides = l.rowMajor()
	} else {
		l.strides = slices.Clone(s.Strides)
	}
	if err := l.checkSpan(); err != nil {
		return Layout{}, err
	}
	l.finish()
	l.readOnly = l.readOnly || l.overlapping()
	return l, nil
}

func (l *Layout) checkSpec(s LayoutSpec) error {
	switch {
	case !s.DType.Valid():
		return &Error{Op: "layout", Kind: ErrDType, Err: fmt.Errorf("%v", s.DType)}
	case !s.Device.valid():
		return &Error{Op: "layout", Kind: ErrDevice, Err: fmt.Errorf("unknown device %v", s.Device)}
	case len(s.Shape) > MaxRank:
		return layoutError("%d axes; at most %d are supported", len(s.Shape), MaxRank)
	case s.Strides != nil && len(s.Strides) != len(s.Shape):
		return layoutError("%d strides for %d axes", len(s.Strides), len(s.Shape))
	case len(s.Strides) > 0 && s.DType.Packed():
		return layoutError("strides for %v, whose elements share bytes", s.DType)
	}
	for axis, dim := range s.Shape {
		if dim < 0 {
			return layoutError("extent %d of axis %d is negative", dim, axis)
		}
	}
	return nil
}

// measure counts the elements. Empty axes count as one in the test for size, as in NumPy, so that
// row-major strides always exist.
func (l *Layout) measure() error {
	size := l.dtype.Size()
	if l.dtype.Packed() {
		size = l.dtype.Bits() * l.dtype.Lanes() // the size in bits must be a number too
	}
	l.n = 1
	for _, dim := range l.shape {
		var ok bool
		if size, ok = mulInt(size, max(dim, 1)); !ok {
			return layoutError("shape %v of %v is larger than memory can be", l.shape, l.dtype)
		}
		l.n *= dim
	}
	return nil
}

// rowMajor gives the strides of a dense array; packed elements have none.
func (l *Layout) rowMajor() []int {
	if l.dtype.Packed() {
		return nil
	}
	strides := make([]int, len(l.shape))
	stride := l.dtype.Size()
	for axis, dim := range slices.Backward(l.shape) {
		strides[axis] = stride
		stride *= max(dim, 1)
	}
	return strides
}

// checkSpan computes the bytes that the elements touch.
func (l *Layout) checkSpan() error {
	l.lo, l.hi = l.offset, l.offset
	if l.n == 0 {
		return nil
	}
	var below, above int // distances from element 0; below is never positive
	ok := true
	for axis, stride := range l.strides {
		reach, fits := mulInt(stride, l.shape[axis]-1)
		if reach < 0 {
			below, ok = addInt(below, reach, ok && fits)
		} else {
			above, ok = addInt(above, reach, ok && fits)
		}
	}
	if size := l.dtype.Size(); size > 0 {
		above, ok = addInt(above, size, ok)
	} else {
		above = int(l.denseBytes())
	}
	_, ok = addInt(above, -below, ok && below != math.MinInt)
	l.lo, ok = addInt(l.offset, below, ok)
	l.hi, ok = addInt(l.offset, above, ok)
	if !ok {
		return layoutError("strides %v with shape %v and offset %d reach farther than memory can",
			l.strides, l.shape, l.offset)
	}
	return nil
}

// finish computes what follows from shape, strides and offset once they are known to be sound.
func (l *Layout) finish() {
	l.contiguous = true
	if l.n == 0 || l.dtype.Packed() {
		return
	}
	expected := l.dtype.Size()
	for axis, dim := range slices.Backward(l.shape) {
		if dim == 1 {
			continue
		}
		if l.strides[axis] != expected {
			l.contiguous = false
			return
		}
		expected *= dim
	}
}

// overlapping reports whether elements may share memory: whether an axis, taken in order of stride,
// takes smaller steps than all smaller axes together are long. Slicing, reversing and permuting axes
// keep the order, so the test is exact for what comes from dense arrays.
func (l *Layout) overlapping() bool {
	if l.n <= 1 || l.dtype.Packed() {
		return false
	}
	type axis struct{ step, reach int }
	var axes []axis
	for i, dim := range l.shape {
		if dim > 1 {
			step := max(l.strides[i], -l.strides[i])
			axes = append(axes, axis{step, step * (dim - 1)})
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.step, b.step) })
	length := l.dtype.Size()
	for _, a := range axes {
		if a.step < length {
			return true
		}
		length += a.reach
	}
	return false
}

// DType returns the element type.
func (l Layout) DType() DType { return l.dtype }

// Device says where the memory is.
func (l Layout) Device() Device { return l.device }

// Rank returns the number of axes.
func (l Layout) Rank() int { return len(l.shape) }

// Dim returns the extent of one axis. It panics if there is no such axis, as indexing does.
func (l Layout) Dim(axis int) int { return l.shape[axis] }

// Stride returns the distance in bytes from one element to the next along one axis. It is 0 for packed types,
// because their elements have no byte of their own. It panics if there is no such axis.
func (l Layout) Stride(axis int) int {
	if l.strides == nil {
		_ = l.shape[axis] // panics as promised
		return 0
	}
	return l.strides[axis]
}

// Shape returns a copy of the extents, outermost axis first.
func (l Layout) Shape() []int { return append([]int{}, l.shape...) }

// Strides returns a copy of the strides in bytes, or nil for packed types.
func (l Layout) Strides() []int { return slices.Clone(l.strides) }

// Len returns the number of elements.
func (l Layout) Len() int { return l.n }

// NBytes returns the number of bytes that the elements take when they are dense: as many as [CopyBytes] writes.
func (l Layout) NBytes() int64 { return l.denseBytes() }

func (l Layout) denseBytes() int64 {
	if l.dtype.Packed() {
		bits := uint64(l.n) * uint64(l.dtype.Bits()*l.dtype.Lanes())
		return int64((bits + 7) / 8)
	}
	return int64(l.n) * int64(l.dtype.Size())
}

// Span returns the range of bytes that the elements touch, relative to the first byte of the memory: from lo up
// to, but not including, hi. With negative strides lo lies before Offset. Without elements both are Offset.
func (l Layout) Span() (lo, hi int) { return l.lo, l.hi }

// Offset returns the distance in bytes from the first byte of the memory to the element with index
// [0, ..., 0].
func (l Layout) Offset() int { return l.offset }

// ReadOnly reports whether nobody may write to the array, because its framework says so or because its elements
// share memory.
func (l Layout) ReadOnly() bool { return l.readOnly }

// Tag says what the elements of an [Opaque] type are, in the framework's own words, or "".
func (l Layout) Tag() string { return l.tag }

// Contiguous reports whether the elements lie in row-major order without gaps. Axes with one element do not
// count. Arrays without elements are contiguous.
func (l Layout) Contiguous() bool { return l.contiguous }

// Spec returns a description of which NewLayout makes an equal Layout. It spells out the strides (except for
// packed types). The slices are copies.
func (l Layout) Spec() LayoutSpec {
	return LayoutSpec{
		DType: l.dtype, Device: l.device, Shape: l.Shape(), Strides: l.Strides(),
		Offset: l.offset, ReadOnly: l.readOnly, Tag: l.tag,
	}
}

// Equal reports whether both layouts describe the same elements at the same places.
func (l Layout) Equal(m Layout) bool {
	return l.dtype == m.dtype && l.device == m.device && l.offset == m.offset &&
		l.readOnly == m.readOnly && l.tag == m.tag &&
		slices.Equal(l.shape, m.shape) && slices.Equal(l.strides, m.strides)
}

// String returns element type and shape, "float32[480 640 3]", or the tag of an opaque type and the shape,
// "datetime64[ns][12]".
func (l Layout) String() string {
	name := l.tag
	if name == "" {
		name = l.dtype.String()
	}
	return name + fmt.Sprint(l.shape)
}

func layoutError(format string, args ...any) error {
	return &Error{Op: "layout", Kind: ErrLayout, Err: fmt.Errorf(format, args...)}
}

// mulInt multiplies and reports whether the product is an int.
func mulInt(a, b int) (int, bool) {
	negative := (a < 0) != (b < 0)
	hi, lo := bits.Mul(absUint(a), absUint(b))
	switch {
	case hi != 0 || lo > 1<<(bits.UintSize-1):
		return 0, false
	case lo == 1<<(bits.UintSize-1):
		return math.MinInt, negative
	case negative:
		return -int(lo), true
	default:
		return int(lo), true
	}
}

func absUint(a int) uint {
	if a < 0 {
		return -uint(a)
	}
	return uint(a)
}

// addInt adds and reports whether the sum is an int and ok was true before.
func addInt(a, b int, ok bool) (int, bool) {
	sum := a + b
	return sum, ok && (sum > a) == (b > 0) || ok && b == 0
}
