package hostarrays

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Idle waits until a GPU of this process has done all that it was given, or until ctx ends.
type Idle func(ctx context.Context, device int) error

// onGPU is memory of the host's on a GPU. Nobody tells when the last array in it ends, and the GPU may still work on it
// then. So while arrays are in use that a call has left behind, or that are there when the host takes the memory back, a
// goroutine looks.
type onGPU struct {
	memory  *py.HostMemory
	device  int
	primary *gpu.Primary
	mapping *gpu.Mapping
	idle    Idle

	mu      sync.Mutex
	held    []*atomic.Uint32 // are 1 until no array is in use
	closed  bool
	looking bool
}

// MapGPU maps memory on a GPU, all of it: a contract.CUDAVMM, whose chunks are the files, or a contract.CUDAIPC, of another process. Errors
// wrap [core.ErrDevice] if this process does not see the GPU, [core.ErrUnsupported] if it has no CUDA, or are the driver's.
func MapGPU(files []*os.File, h contract.Handle, writable bool, idle Idle) (*Segment, error) {
	var uuid contract.UUID
	var open func(p *gpu.Primary) (*gpu.Mapping, error)
	switch h := h.(type) {
	case contract.CUDAVMM:
		uuid, open = h.GPU, func(p *gpu.Primary) (*gpu.Mapping, error) { return mapFiles(p, files, h, writable) }
	case contract.CUDAIPC:
		uuid, open = h.GPU, func(*gpu.Primary) (*gpu.Mapping, error) { return openIPC(h) }
	default:
		return nil, exportError(core.ErrProtocol, "memory of type %T", h)
	}
	where, err := gpu.ByUUID(uuid)
	if err != nil {
		return nil, err
	}
	primary, err := gpu.Open(where.Index)
	if err != nil {
		return nil, err
	}
	var mapping *gpu.Mapping
	err = primary.Do(func() (err error) { mapping, err = open(primary); return err })
	if err != nil {
		_ = primary.Close() // there is a worse error
		return nil, err
	}
	memory := py.NewHostMemory(mapping.Addr, 0)
	return &Segment{memory: memory, size: mapping.Size, writable: writable, gpu: &onGPU{
		memory: memory, device: where.Index, primary: primary, mapping: mapping, idle: idle,
	}}, nil
}

// mapFiles is called in the primary context.
func mapFiles(p *gpu.Primary, files []*os.File, h contract.CUDAVMM, writable bool) (*gpu.Mapping, error) {
	m, err := gpu.Reserve(p.Device, h.Extent())
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(h.Chunks) && err == nil; i++ {
		err = m.Import(files[i], h.Chunks[i].Size)
	}
	if err == nil {
		err = m.Allow(writable)
	}
	if err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	return m, nil
}

// Former memory of another process, at whose place a new allocation lies, is unmapped when its last array has ended, which nobody tells:
// so openIPC tries again.
const (
	openRest = 10 * time.Millisecond
	openWait = 2 * time.Second
)

// openIPC is called in the primary context.
func openIPC(h contract.CUDAIPC) (*gpu.Mapping, error) {
	for start := time.Now(); ; {
		m, err := gpu.OpenIPC(h.Mem, h.Size)
		if e, ok := errors.AsType[*driver.Error](err); !ok || e.Code != driver.AlreadyMapped || time.Since(start) > openWait {
			return m, err
		}
		<-time.After(openRest)
	}
}

// Device gives the number of the GPU here, and false for host memory.
func (s *Segment) Device() (int, bool) {
	if s.gpu == nil {
		return 0, false
	}
	return s.gpu.device, true
}

// Over is called when a function is over that was given arrays in memory on a GPU. The host is told when the GPU has done what it was
// given until then. held is the word that counted those.
func (s *Segment) Over(held *atomic.Uint32) {
	if s.gpu != nil {
		s.gpu.over(held)
	}
}

// export gives the layout that an array has here, where GPUs may have other numbers.
func (m *onGPU) export(l core.Layout) (core.Layout, error) {
	if l.Device().Kind != core.CUDA {
		return l, exportError(core.ErrDevice, "the array is on %v, and the segment on a GPU", l.Device())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return l, exportError(core.ErrClosed, "the host has taken the memory back")
	}
	spec := l.Spec()
	spec.Device.Index = m.device
	return core.NewLayout(spec)
}

func (m *onGPU) over(held *atomic.Uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory.Arrays() > 0 {
		held.Store(1)
		if !slices.Contains(m.held, held) {
			m.held = append(m.held, held)
		}
		m.look()
	}
}

func (m *onGPU) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		m.look()
	}
}

// look has the arrays looked at. The caller has the lock.
func (m *onGPU) look() {
	if !m.looking {
		m.looking = true
		go m.run()
	}
}

const (
	// How long run rests: it looks ever less often.
	firstRest = time.Millisecond
	lastRest  = time.Second
)

// run waits until no array is in use, and the GPU is done with them.
func (m *onGPU) run() {
	for rest := firstRest; ; rest = min(2*rest, lastRest) {
		if m.memory.Arrays() > 0 {
			<-time.After(rest)
			continue
		}
		_ = m.idle(context.Background(), m.device) // a context that is broken does nothing any more
		if m.rest() {
			return
		}
	}
}

// rest reports whether nobody needs to look any more. Then the memory is unmapped, if the host has taken it back.
func (m *onGPU) rest() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory.Arrays() > 0 || m.closed && !m.memory.CloseUnused() {
		return false // a call has come in between
	}
	for _, held := range m.held {
		held.Store(0)
	}
	clear(m.held)
	m.held = m.held[:0]
	m.looking = false
	if m.closed {
		_ = m.primary.Do(m.mapping.Unmap) // or it went with its context
		_ = m.primary.Close()
	}
	return true
}
