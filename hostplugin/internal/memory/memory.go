// Package memory maps what leases name.
package memory

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

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

// Last is the host memory of a source's last lease. The zero value is none.
type Last struct{ mapped atomic.Pointer[mapped] }

type mapped struct {
	lease  *core.Lease
	memory *segments.Memory
}

// Host maps what the handle of a lease on host memory names: nil for an array without elements. The lease
// is not written any more. If it is the last one, by its address, and still mapped, that is quick.
func (m *Mapper) Host(ctx context.Context, lease *core.Lease, last *Last) (core.Memory, error) {
	if l := last.mapped.Load(); l != nil && l.lease == lease && l.memory.Again() {
		return l.memory, nil
	}
	switch handle := lease.Handle.(type) {
	case nil:
		return nil, nil //nolint:nilnil // as said
	case core.Segment:
		memory, err := m.Segments.Map(ctx, handle, lease.Writable)
		if err != nil {
			return nil, err // not mapped: a nil *Memory would be a core.Memory
		}
		last.mapped.Store(&mapped{lease, memory})
		return memory, nil
	default:
		return nil, fmt.Errorf("a handle of type %T", handle)
	}
}

// OfGPU maps what the handle of a lease on a GPU's memory names. The layout is the lease's, on the device
// as the host counts. After an error the lease stands; else the memory ends it by release.
func (m *Mapper) OfGPU(ctx context.Context, lease core.Lease, release func()) (core.Memory, core.Layout, error) {
	if gpu, _ := gpus.Of(lease.Handle); !slices.Contains(m.GPUs, gpu) {
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
