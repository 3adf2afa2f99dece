package hostplugin

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/gpu"
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
	if device == (core.Device{}) {
		return s.New(dtype, shape...)
	}
	if err := s.alive("new", ""); err != nil {
		return nil, err
	}
	v, err := s.newOnGPU(device, dtype, shape)
	return v, s.wrap("new", hostArray, err)
}

func (s *Session) newOnGPU(device core.Device, dtype core.DType, shape []int) (*core.View, error) {
	if device.Kind != core.CUDA {
		return nil, &core.Error{Kind: core.ErrDevice, Err: errors.New("no arrays are made on " + device.String()), Remedy: "name a CUDA device"}
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: dtype, Shape: shape, Device: device})
	if err != nil {
		return nil, err
	}
	m, descriptor, err := s.gpu.Own(device.Index, l.NBytes())
	if err != nil {
		return nil, err
	}
	all, err := gpu.Devices() // as Own has found
	if err != nil {
		return nil, errors.Join(err, descriptor.Close(), m.Close())
	}
	file := arrays.NewGPUFile(descriptor, m.Size(), all[device.Index].UUID)
	s.gpuArrays.Store(core.Memory(m), file)
	return s.arrays.view(l, m, func() error {
		s.gpuArrays.Delete(core.Memory(m))
		return file.Close()
	})
}

// own gives the file of the host's own memory, or nil.
func (c *carrier) own(m core.Memory) *arrays.File {
	if own := hostMemory(m); own != nil {
		return own.File
	}
	return c.session.gpuArray(m)
}

// gpuArray gives the file of memory that NewOn has made, or nil.
func (s *Session) gpuArray(m core.Memory) *arrays.File {
	if f, ok := s.gpuArrays.Load(m); ok {
		return f.(*arrays.File) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	return nil
}
