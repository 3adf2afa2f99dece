package hostplugin

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// NewOn is [Session.New] on a device: for a CUDA device, an array of zeros in memory of that GPU, whose index is its place in
// the list of cuda.Devices. The device core.Device{} is host memory. cuda.Function.Launch and [core.Copy] use the view as any
// other on a GPU. As an argument it becomes an array of the function's framework over the same memory; the program reaches the GPU
// if it sees it, whatever number it has there.
//
// A call waits until the host's streams have done what they were given with its arguments, and returns when the program's
// GPU has done what the function has given it. So nobody else needs to order anything. A function that works in a CUDA
// context of its own, and leaves it before it returns, waits for its work itself.
//
// The errors are those of New, and wrap core.ErrDevice (there is no such device) or core.ErrUnsupported (this host has no
// CUDA, or the GPU cannot export memory by a descriptor).
func (s *Session) NewOn(device core.Device, dtype core.DType, shape ...int) (*core.View, error) {
	if err := s.alive("new", ""); err != nil {
		return nil, err
	}
	v, err := s.arrays.make(device, dtype, shape)
	return v, s.arrays.wrap("new", err)
}

// NewOn is [Session.NewOn] for arrays that functions of all the host's programs can be given, as those of [Host.New]. They live
// until they are closed, or the host.
func (h *Host) NewOn(device core.Device, dtype core.DType, shape ...int) (*core.View, error) {
	v, err := h.arrays.make(device, dtype, shape)
	return v, h.arrays.wrap("new", err)
}

// onGPU is a stretch on a GPU.
type onGPU struct {
	*imports.Own
	*arrays.File
}

func (o *owned) onGPU(index int, size int64) (stretch, error) {
	own, descriptor, err := o.gpu.Own(index, size)
	if err != nil {
		return nil, err
	}
	all, err := gpu.Devices() // as Own has found
	if err != nil {
		return nil, errors.Join(err, descriptor.Close(), own.Close())
	}
	h := contract.CUDAVMM{GPU: all[index].UUID, Chunks: []contract.CUDAChunk{{Size: own.Size()}}}
	m := onGPU{own, arrays.OnGPU(h, descriptor)}
	own.Owner = m.File
	return m, nil
}

func (m onGPU) memory(back func() error) (core.Memory, error) {
	return m.Memory(func() { _ = back() }) // when the streams are done there is nobody to tell
}

// Close frees it here. Programs keep what they have of it.
func (m onGPU) Close() error { return errors.Join(m.File.Close(), m.Own.Close()) }

// fileOnGPU gives the file of a stretch on a GPU.
func fileOnGPU(own *imports.Own) *arrays.File {
	if own == nil {
		return nil
	}
	return own.Owner.(*arrays.File) //nolint:errcheck,forcetypeassert // which onGPU has made it
}
