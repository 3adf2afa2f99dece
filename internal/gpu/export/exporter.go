package export

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Exporter is a program's side of GPU arrays. Its streams wait for the program's work and tell other
// processes with a [FenceWord]. It exports allocations by handles, and copies arrays whose memory has
// no handle.
//
// An exporter creates no context: it works in the contexts of the arrays, and in primary contexts that
// are in use. Its methods are safe for concurrent use, and so are those of its values, except that one
// goroutine at a time uses a [Queue]. The zero value is ready.
type Exporter struct {
	// Captures knows of the captures of graphs in this process; nil: nothing does. It is set before the first use.
	Captures Captures

	mu      sync.Mutex
	closed  bool
	states  map[driver.Context]*contextState
	primary map[int]driver.Context // retained, by device
	proven  provenIDs
	pools   pools
	staging staging
}

// Captures knows whether a graph is being captured. While one is, calls that concern a whole context
// destroy it.
type Captures interface {
	// Hold keeps threads from beginning a capture until Let is called. It reports false, and holds nothing, if
	// a capture is under way.
	Hold() bool
	Let()
}

// Close frees all streams, fence words and memory of copies. Fence words that were not reached count as
// failed. Call it when no host needs anything any more.
func (x *Exporter) Close() error {
	x.mu.Lock()
	x.closed = true
	states, primary := x.states, x.primary
	x.states, x.primary = nil, nil
	x.mu.Unlock()
	x.staging.close()
	var err error
	for _, p := range states {
		err = errors.Join(err, p.close(false))
	}
	for device := range primary {
		err = errors.Join(err, driver.PrimaryCtxRelease(driver.Device(device)))
	}
	return err
}

// Queue returns a queue in the context that owns the memory. The caller closes it.
func (x *Exporter) Queue(p gpu.Pointer) (*Queue, error) {
	return queueOf(x.stateFor(p))
}

// QueueOn returns a queue in the primary context of a device. A framework can order its arrays on that
// device with the queue's stream. The error wraps [core.ErrDevice] if no code uses that context. The
// caller closes the queue.
func (x *Exporter) QueueOn(device int) (*Queue, error) {
	return queueOf(x.stateOn(device))
}

// stateFor finds the exporter's state in the context that owns the memory.
func (x *Exporter) stateFor(p gpu.Pointer) (*contextState, error) {
	if p.Context() == 0 {
		return x.stateOn(p.Device.Index)
	}
	return x.stateOf(driver.Context(p.Context()), p.Device.Index)
}

// stateOn finds it in the primary context of a device.
func (x *Exporter) stateOn(device int) (*contextState, error) {
	ctx, err := x.primaryOf(device)
	if err != nil {
		return nil, err
	}
	return x.stateOf(ctx, device)
}

// FenceAll returns a fence word of all work that the memory's context was given until now. If there is none, with an error or without,
// it takes time, or a [Queue] says why it cannot be: see [Queue.AfterContext] and [Queue.Fence].
func (x *Exporter) FenceAll(p gpu.Pointer) (*FenceWord, error) {
	state, err := x.stateFor(p)
	if err != nil {
		return nil, err
	}
	return state.fenceAll()
}

// primaryOf retains a device's primary context, which must be active already.
func (x *Exporter) primaryOf(device int) (driver.Context, error) {
	d := driver.Device(device)
	active, err := driver.PrimaryCtxActive(d)
	if err == nil && !active {
		err = &core.Error{
			Op: "order", Object: core.Device{Kind: core.CUDA, Index: device}.String(), Kind: core.ErrDevice,
			Err:    errors.New("the program does not use the device's primary context"),
			Remedy: "use a framework on that device before, as most use that context",
		}
	}
	if err != nil {
		return 0, driver.Explain("order", fmt.Sprintf("device %d", device), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if ctx, ok := x.primary[device]; ok {
		return ctx, nil
	}
	if x.closed {
		return 0, errClosed()
	}
	ctx, err := driver.PrimaryCtxRetain(d)
	if err != nil {
		return 0, driver.Explain("order", fmt.Sprintf("device %d", device), err)
	}
	if x.primary == nil {
		x.primary = make(map[int]driver.Context)
	}
	x.primary[device] = ctx
	return ctx, nil
}

func queueOf(p *contextState, err error) (*Queue, error) {
	if err != nil {
		return nil, err
	}
	q, err := p.take()
	if err != nil {
		return nil, driver.Explain("order", fmt.Sprintf("device %d", p.device.Index), err)
	}
	return q, nil
}

// stateOf finds the exporter's state in a context. A new context may have the handle of an ended one,
// but has another ID.
func (x *Exporter) stateOf(ctx driver.Context, device int) (*contextState, error) {
	id, err := driver.CtxID(ctx)
	if err != nil && !errors.Is(err, core.ErrUnsupported) {
		return nil, driver.Explain("order", fmt.Sprintf("device %d", device), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed()
	}
	p := x.states[ctx]
	if p != nil && p.id == id {
		return p, nil
	}
	gpus, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= len(gpus) {
		return nil, &core.Error{Op: "order", Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(gpus))}
	}
	if p != nil {
		_ = p.close(true) // only memory of the host is left
	}
	p = newContextState(ctx, id, gpus[device])
	p.captures = x.Captures
	if x.states == nil {
		x.states = make(map[driver.Context]*contextState)
	}
	x.states[ctx] = p
	return p, nil
}

func errClosed() error {
	return &core.Error{Op: "order", Kind: core.ErrClosed, Err: errors.New("the program's session has ended")}
}

// GPU returns the identity of a device of this process.
func (*Exporter) GPU(device int) (contract.UUID, error) {
	gpus, err := gpu.Devices()
	if err == nil && (device < 0 || device >= len(gpus)) {
		err = &core.Error{Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(gpus))}
	}
	if err != nil {
		return contract.UUID{}, err
	}
	return gpus[device].UUID, nil
}

// Mark is a point in a program's work on a GPU. Its maker holds it once.
type Mark struct {
	state *contextState
	event driver.Event // null: everything before it was done
	holds atomic.Int32 // but for the first
}

// Hold adds a holder: each holder calls Close once.
func (m *Mark) Hold() { m.holds.Add(1) }

// Mark marks all work that the stream was given until now. The stream is a CUstream, 1 for the legacy
// default stream of the memory's context, or 2 for that of the calling thread. The caller closes the
// mark.
func (x *Exporter) Mark(p gpu.Pointer, stream uintptr) (*Mark, error) {
	q, err := x.Queue(p)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var m *Mark
	err = q.state.in(func() error {
		at, err := q.stateOfStream(x, driver.Stream(stream))
		if err != nil {
			return err
		}
		m, err = at.mark(func(e driver.Event) error { return driver.EventRecord(e, driver.Stream(stream)) })
		return err
	})
	return m, publishError(err)
}

// MarkAll marks all work that the memory's context was given until now. If the driver cannot, MarkAll
// waits for that work. The error wraps [core.ErrUnavailable] while a graph is captured. The caller closes the
// mark.
func (x *Exporter) MarkAll(p gpu.Pointer) (*Mark, error) {
	q, err := x.Queue(p)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	at := q.state
	var m *Mark
	err = at.whole(func() error {
		m, err = at.mark(func(e driver.Event) error { return driver.CtxRecordEvent(at.ctx, e) })
		if isUnsupported(err) {
			m = &Mark{state: at}
			return at.in(driver.CtxSynchronize)
		}
		return err
	})
	return m, publishError(err)
}

// mark makes and records an event in the context.
func (c *contextState) mark(record func(driver.Event) error) (m *Mark, err error) {
	err = c.in(func() error {
		e, err := driver.EventCreate(driver.EventDisableTiming)
		if err != nil {
			return err
		}
		m = &Mark{state: c, event: e}
		if err = record(e); err != nil {
			return cmp.Or(err, driver.EventDestroy(e))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func publishError(err error) error {
	if err == nil {
		return nil
	}
	return driver.Explain("publish", "", captured(err))
}

// Close ends one hold. The last Close frees the mark. Queues that wait for it go on waiting.
func (m *Mark) Close() {
	if m.holds.Add(-1) < 0 && m.event != 0 {
		_ = m.state.in(func() error { return driver.EventDestroy(m.event) }) // or it went with its context
	}
}
