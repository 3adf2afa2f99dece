package leases

import (
	"log/slog"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
)

// FindGPUs finds out, beside the start of a program, whose memory the host can map. The channel gives that
// once. Without CUDA it is nothing: then programs copy what they have on GPUs to host memory.
func FindGPUs(log *slog.Logger) <-chan []contract.UUID {
	found := make(chan []contract.UUID, 1)
	go func() {
		all, err := cuda.Devices()
		if err != nil {
			log.Debug("arrays on GPUs will be copied to host memory", slog.Any("cause", err))
		}
		var ids []contract.UUID
		for _, d := range all {
			ids = append(ids, d.UUID)
		}
		found <- ids
	}()
	return found
}

// gpuOf says which GPU a handle's memory lies on, if it is one of GPU memory.
func gpuOf(handle contract.Handle) (id contract.UUID, ok bool) {
	switch h := handle.(type) {
	case contract.CUDAIPC:
		return h.GPU, true
	case contract.CUDAVMM:
		return h.GPU, true
	case contract.CUDAPool:
		return h.GPU, true
	default:
		return contract.UUID{}, false
	}
}
