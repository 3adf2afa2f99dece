package dlpack

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/ndbridge/ndbridge/core"
)

// Tensor is what a managed tensor says about its array. Nobody has checked that the memory is there.
type Tensor struct {
	// Spec describes the array relative to Addr: its offset is 0. It is what core.NewLayout checks.
	// Elements of less than a byte that the producer padded to a byte each are opaque bytes with the
	// name of their type as the tag: "int4".
	Spec core.LayoutSpec
	// Addr is the address of the element with index [0, ..., 0]. It may be 0 only if there are no
	// elements. On a CUDA device it is a device pointer.
	Addr uintptr
	// Copied says that the producer made a copy for this export.
	Copied bool
}

// The device types of dlpack.h that have a counterpart in core.
const (
	deviceCPU         = 1
	deviceCUDA        = 2
	deviceCUDAHost    = 3
	deviceCUDAManaged = 13
)

// otherDevices names the device types of dlpack.h 1.3 that are not supported.
var otherDevices = map[int32]string{
	4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 11: "rocm_host", 12: "ext_dev",
	14: "oneapi", 15: "webgpu", 16: "hexagon", 17: "maia", 18: "trn",
}

// Tensor reads the array. Errors wrap core.ErrVersion for another major version than 1, core.ErrDType for element types
// that core does not have, core.ErrDevice for other devices than the CPU and CUDA's, core.ErrPointer for pointers that
// cannot be right, and core.ErrLayout for shapes and strides that cannot be right. Tensor checks the numbers beside a pointer
// before it reads what the pointer leads to.
func (m Managed) Tensor() (Tensor, error) {
	offset, size, flags := legacyTensor, legacySize, uint64(0)
	if m.Kind == Versioned {
		if m.Major != Major {
			return Tensor{}, dlpackError(core.ErrVersion, "DLPack %d.%d, supported is %d.x", m.Major, m.Minor, Major)
		}
		offset, size = versionedTensor, versionedSize
	}
	b, err := readAligned(m.mem, m.Addr, size)
	if err != nil {
		return Tensor{}, err
	}
	if m.Kind == Versioned {
		flags = word64(b[versionedFlags:])
	}
	return m.tensor(b[offset:][:tensorSize], flags)
}

func (m Managed) tensor(b []byte, flags uint64) (Tensor, error) {
	t := Tensor{Copied: flags&flagCopied != 0}
	t.Spec.ReadOnly = flags&flagReadOnly != 0
	device, err := deviceOf(int32(word32(b[tensorDeviceType:])), int32(word32(b[tensorDeviceID:])))
	if err != nil {
		return Tensor{}, err
	}
	t.Spec.Device = device
	lanes := binary.NativeEndian.Uint16(b[tensorLanes:])
	d, err := m.dtypeOf(int(b[tensorCode]), int(b[tensorBits]), int(lanes))
	if err != nil {
		return Tensor{}, err
	}
	t.Spec.DType = d
	if d.Packed() && flags&flagPadded != 0 {
		if d.Bits()*d.Lanes() > 8 {
			return Tensor{}, dlpackError(core.ErrDType, "%v padded to a byte", d)
		}
		t.Spec.Tag = d.String()
		if t.Spec.DType, err = core.Opaque(1); err != nil {
			return Tensor{}, err
		}
	}
	if err := m.geometry(&t, b); err != nil {
		return Tensor{}, err
	}
	return t, m.address(&t, word64(b[tensorData:]), word64(b[tensorByteOffset:]))
}

// deviceOf translates a DLDevice. The number of a CPU is dropped: JAX counts its host devices.
func deviceOf(kind, id int32) (core.Device, error) {
	d := core.Device{Index: int(id)}
	switch kind {
	case deviceCPU:
		return core.Device{}, nil
	case deviceCUDA:
		d.Kind = core.CUDA
	case deviceCUDAHost:
		d.Kind = core.CUDAPinned
	case deviceCUDAManaged:
		d.Kind = core.CUDAManaged
	default:
		if name, ok := otherDevices[kind]; ok {
			return d, dlpackError(core.ErrDevice, "%s (DLPack device type %d) is not supported", name, kind)
		}
		return d, dlpackError(core.ErrDevice, "unknown DLPack device type %d", kind)
	}
	if id < 0 {
		return d, dlpackError(core.ErrDevice, "device number %d", id)
	}
	return d, nil
}

// dtypeOf translates a DLDataType.
func (m Managed) dtypeOf(code, bits, lanes int) (core.DType, error) {
	const codeUint, codeOpaque = 1, 3
	switch {
	case code == codeOpaque:
		return core.Invalid, dlpackError(core.ErrDType, "opaque handles mean nothing in another process")
	case m.Kind == Legacy && code == codeUint && bits == 1 && lanes == 1:
		return core.Bool, nil // so did frameworks say bool before DLPack had it; a byte each
	}
	return core.NewDType(code, bits, lanes)
}

// geometry reads rank, shape and strides. DLPack counts strides in elements.
func (m Managed) geometry(t *Tensor, b []byte) error {
	rank := int32(word32(b[tensorNDim:]))
	if rank < 0 || rank > core.MaxRank {
		return dlpackError(core.ErrLayout, "%d axes; 0 to %d are supported", rank, core.MaxRank)
	}
	if rank == 0 {
		return nil
	}
	shape, err := m.words(uintptr(word64(b[tensorShape:])), int(rank), "shape")
	if err != nil {
		return err
	}
	for axis, dim := range shape {
		if dim < 0 || dim > math.MaxInt {
			return dlpackError(core.ErrLayout, "extent %d of axis %d", dim, axis)
		}
		t.Spec.Shape = append(t.Spec.Shape, int(dim))
	}
	address := uintptr(word64(b[tensorStrides:]))
	if address == 0 {
		return nil // row-major: usual before DLPack 1.2, and met after it
	}
	strides, err := m.words(address, int(rank), "strides")
	if err != nil {
		return err
	}
	if t.Spec.DType.Packed() {
		return checkDense(t.Spec, strides)
	}
	for axis, stride := range strides {
		bytes, ok := scale(stride, t.Spec.DType.Size())
		if !ok && t.Spec.Shape[axis] > 1 {
			return dlpackError(core.ErrLayout, "stride of %d elements of %v along axis %d",
				stride, t.Spec.DType, axis)
		}
		t.Spec.Strides = append(t.Spec.Strides, bytes) // 0 if it is as large as it is pointless
	}
	return nil
}

// words reads an array of int64.
func (m Managed) words(addr uintptr, n int, what string) ([]int64, error) {
	if addr == 0 {
		return nil, pointerError("%s of %d axes is NULL", what, n)
	}
	b, err := readAligned(m.mem, addr, 8*n)
	if err != nil {
		return nil, err
	}
	words := make([]int64, n)
	for i := range words {
		words[i] = int64(word64(b[8*i:]))
	}
	return words, nil
}

// checkDense refuses strides of packed elements that are not those of a dense row-major array.
func checkDense(spec core.LayoutSpec, strides []int64) error {
	expected := int64(1)
	if slices.Contains(spec.Shape, 0) {
		return nil
	}
	for axis, stride := range slices.Backward(strides) {
		dim := int64(spec.Shape[axis])
		if dim > 1 && stride != expected {
			return dlpackError(core.ErrLayout, "strides %v of %v, whose elements share bytes, with shape %v",
				strides, spec.DType, spec.Shape)
		}
		expected *= dim // what overflows is refused as a size
	}
	return nil
}

// address adds the byte offset to the data pointer, and refuses memory that cannot be there.
func (m Managed) address(t *Tensor, data, offset uint64) error {
	if slices.Contains(t.Spec.Shape, 0) {
		t.Addr = uintptr(data)
		return nil
	}
	sum, carry := bits.Add64(data, offset, 0)
	switch {
	case data == 0:
		return pointerError("no storage: the data pointer of shape %v is NULL", t.Spec.Shape)
	case carry != 0 || sum > math.MaxUint:
		return pointerError("byte offset %s from %#x", strconv.FormatUint(offset, 10), data)
	}
	t.Addr = uintptr(sum)
	return nil
}

// scale multiplies a stride by the size of an element, or gives 0 and false.
func scale(stride int64, size int) (int, bool) {
	bytes := stride * int64(size)
	if size != 0 && (bytes/int64(size) != stride || bytes != int64(int(bytes))) {
		return 0, false
	}
	return int(bytes), true
}
