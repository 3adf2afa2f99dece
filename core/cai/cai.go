package cai

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ndbridge/ndbridge/core"
)

// Dict holds the entries of the dictionary of an array interface as they were found: plain data that nobody has checked.
type Dict struct {
	Shape      []int64
	Typestr    string
	Descr      string  // the text of the descr entry as Python prints it; "" if missing or None
	HasStrides bool    // false if strides is missing or None
	Strides    []int64 // bytes
	Data       uint64  // the pointer; 0 for None
	Offset     int64   // bytes to add to the pointer; __array_interface__ only
	ReadOnly   bool    // the second part of data
	Version    int     // 0 if missing
	Mask       bool    // there is a mask entry that is not None
	Stream     Stream  // __cuda_array_interface__ only
}

// Stream is the stream entry of a CUDA Array Interface. The zero value stands for an entry that is missing or None: no
// work must be waited for, or the producer does not say.
type Stream struct {
	Given  bool
	Handle int64 // 1: the legacy default stream; 2: the per-thread one; else a cudaStream_t
}

// Array is what an array interface says about an array. Nobody has checked that the memory is there.
type Array struct {
	Spec   core.LayoutSpec // relative to Addr: its offset is 0
	Addr   uintptr         // of the element with index [0, ..., 0]; may be 0 only without elements
	Stream Stream
}

// maxVersion is the newest version of both protocols.
const maxVersion = 3

// ReadCUDA reads a __cuda_array_interface__. The protocol does not name the device: dev is what the CUDA driver says about
// the pointer.
//
// Errors wrap core.ErrVersion for a version that is not 0 to 3, core.ErrDType for element types that cannot cross,
// core.ErrLayout for shapes and strides that make no sense, core.ErrPointer for a pointer that cannot be right,
// core.ErrUnsupported for an array with a mask, and core.ErrProtocol for a negative stream and for stream 0, which the
// protocol forbids because it is ambiguous.
func ReadCUDA(d Dict, dev core.Device) (Array, error) {
	if d.Stream.Given && d.Stream.Handle <= 0 {
		return Array{}, readError(core.ErrProtocol, "stream %d is forbidden", d.Stream.Handle)
	}
	a, err := read(d, dev)
	a.Stream = d.Stream
	return a, err
}

// ReadHost reads an __array_interface__. Its errors are those of [ReadCUDA]. It ignores a stream.
func ReadHost(d Dict) (Array, error) { return read(d, core.Device{}) }

func read(d Dict, dev core.Device) (Array, error) {
	if d.Version < 0 || d.Version > maxVersion {
		return Array{}, readError(core.ErrVersion, "version %d of the protocol, supported are 0 to %d",
			d.Version, maxVersion)
	}
	if d.Mask {
		return Array{}, &core.Error{
			Op: "read", Kind: core.ErrUnsupported, Err: errors.New("the array has a mask"),
			Remedy: "fill the masked elements first",
		}
	}
	dtype, tag, err := ParseTypestr(d.Typestr, d.Descr)
	if err != nil {
		return Array{}, err
	}
	a := Array{Spec: core.LayoutSpec{DType: dtype, Device: dev, ReadOnly: d.ReadOnly, Tag: tag}}
	if a.Spec.Shape, a.Spec.Strides, err = geometry(d.Shape, d.Strides, d.HasStrides); err != nil {
		return Array{}, err
	}
	a.Addr, err = address(a.Spec.Shape, d.Data, d.Offset)
	return a, err
}

// geometry checks shape and strides as far as they are not core.NewLayout's to check.
func geometry(shape, strides []int64, hasStrides bool) (dims, steps []int, err error) {
	if dims, err = ints(shape); err != nil {
		return nil, nil, err
	}
	if !hasStrides {
		return dims, nil, nil
	}
	if len(strides) != len(shape) {
		return nil, nil, readError(core.ErrLayout, "%d strides for %d axes", len(strides), len(shape))
	}
	steps, err = ints(strides)
	return dims, steps, err
}

func ints(words []int64) ([]int, error) {
	result := make([]int, len(words))
	for i, w := range words {
		if result[i] = int(w); int64(result[i]) != w {
			return nil, readError(core.ErrLayout, "%d is too large for this machine", w)
		}
	}
	return result, nil
}

// address is where element [0, ..., 0] lies. Without elements the pointer may be anything.
func address(shape []int, data uint64, offset int64) (uintptr, error) {
	if slices.Contains(shape, 0) {
		return uintptr(data), nil
	}
	sum, carry := bits.Add64(data, uint64(offset), 0)
	switch {
	case data == 0:
		return 0, readError(core.ErrPointer, "no storage: the pointer of shape %v is NULL", shape)
	case (carry == 1) != (offset < 0) || uint64(uintptr(sum)) != sum:
		return 0, readError(core.ErrPointer, "offset %d from %#x", offset, data)
	}
	return uintptr(sum), nil
}

func readError(kind error, format string, args ...any) error {
	return &core.Error{Op: "read", Kind: kind, Err: fmt.Errorf(format, args...)}
}
