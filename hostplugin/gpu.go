package hostplugin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
)

// findGPUs finds out, beside the start of a program, whose memory the host can map. The channel gives
// that once. Without CUDA it is nothing: then programs copy what they have on GPUs to host memory.
func (h *Host) findGPUs() <-chan []core.UUID {
	found := make(chan []core.UUID, 1)
	go func() {
		all, err := cuda.Devices()
		if err != nil {
			h.opts.log.Debug("arrays on GPUs will be copied to host memory", slog.Any("cause", err))
		}
		var ids []core.UUID
		for _, d := range all {
			ids = append(ids, d.UUID)
		}
		found <- ids
	}()
	return found
}

// onGPU says whether a handle is one of GPU memory.
func onGPU(handle core.Handle) bool {
	switch handle.(type) {
	case core.CUDAIPC, core.CUDAVMM, core.CUDAPool:
		return true
	default:
		return false
	}
}

// gpuMemory opens what a lease's handle names. The layout is the lease's, on the device as the host
// counts. The memory's Close gives the lease back; after an error it stands.
func (s *Session) gpuMemory(ctx context.Context, lease core.Lease) (core.Memory, core.Layout, error) {
	var gpu core.UUID
	switch h := lease.Handle.(type) {
	case core.CUDAIPC:
		gpu = h.GPU
	case core.CUDAVMM:
		gpu = h.GPU
	case core.CUDAPool:
		gpu = h.GPU
	}
	if !slices.Contains(s.gpus, gpu) {
		return nil, core.Layout{}, &core.Error{
			Kind: core.ErrProtocol, Err: fmt.Errorf("memory of %v, which is none of the host's GPUs", gpu),
		}
	}
	memory, device, err := s.gpuCache.Memory(ctx, lease, func() { s.release(lease.ID) })
	if err != nil {
		return nil, core.Layout{}, err
	}
	spec := lease.Layout.Spec()
	spec.Device = device
	layout, err := core.NewLayout(spec)
	if err != nil {
		return nil, core.Layout{}, err
	}
	return memory, layout, nil
}
