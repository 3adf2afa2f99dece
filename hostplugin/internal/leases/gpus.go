package leases

import (
	"log/slog"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
)

// FindGPUs finds out, beside the start of a program, whose memory the host can map. The channel gives that
// once. Without CUDA it is nothing: then programs copy what they have on GPUs to host memory.
func FindGPUs(log *slog.Logger) <-chan []core.UUID {
	found := make(chan []core.UUID, 1)
	go func() {
		all, err := cuda.Devices()
		if err != nil {
			log.Debug("arrays on GPUs will be copied to host memory", slog.Any("cause", err))
		}
		var ids []core.UUID
		for _, d := range all {
			ids = append(ids, d.UUID)
		}
		found <- ids
	}()
	return found
}

// gpuOf says which GPU a handle's memory lies on, if it is one of GPU memory.
func gpuOf(handle core.Handle) (id core.UUID, ok bool) {
	switch h := handle.(type) {
	case core.CUDAIPC:
		return h.GPU, true
	case core.CUDAVMM:
		return h.GPU, true
	case core.CUDAPool:
		return h.GPU, true
	default:
		return core.UUID{}, false
	}
}
