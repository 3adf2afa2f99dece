// Package memory maps what leases name.
package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/segments"
)

// Mapper maps one program's memory.
type Mapper struct {
	Segments *segments.Cache
	GPU      *cuda.Importer
	GPUs     []core.UUID // those that the program knows the host to have
}

// Map maps what a lease's handle names: nil for an array without elements. The layout is the lease's, on
// the device as the host counts. After an error the lease stands; else memory of a GPU ends it by release.
func (m *Mapper) Map(ctx context.Context, lease core.Lease, release func()) (core.Memory, core.Layout, error) {
	if gpu, ok := gpus.Of(lease.Handle); ok {
		return m.gpu(ctx, lease, gpu, release)
	}
	switch handle := lease.Handle.(type) {
	case nil:
		return nil, lease.Layout, nil
	case core.Segment:
		mapped, err := m.Segments.Map(ctx, handle, lease.Writable)
		if err != nil {
			return nil, core.Layout{}, err // not mapped: a nil *Memory would be a core.Memory
		}
		return mapped, lease.Layout, nil
	default:
		return nil, core.Layout{}, fmt.Errorf("a handle of type %T", handle)
	}
}

func (m *Mapper) gpu(
	ctx context.Context, lease core.Lease, gpu core.UUID, release func(),
) (core.Memory, core.Layout, error) {
	if !slices.Contains(m.GPUs, gpu) {
		return nil, core.Layout{}, &core.Error{
			Kind: core.ErrProtocol, Err: fmt.Errorf("memory of %v, which is none of the host's GPUs", gpu),
		}
	}
	mapped, device, err := m.GPU.Memory(ctx, lease, release)
	if err != nil {
		return nil, core.Layout{}, err
	}
	spec := lease.Layout.Spec()
	spec.Device = device
	layout, err := core.NewLayout(spec)
	return mapped, layout, err // never: only the device is another
}
