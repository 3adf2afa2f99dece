package export

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// Exporter is a program's side of GPU arrays: it lets streams of its own wait for the program's work,
// says so to other processes by [Word]s, and makes handles of allocations and copies of what has none.
//
// It makes no context: it works in those that arrays belong to, and in primary contexts that are in
// use. Its methods, and those of what it makes, are safe for concurrent use but for those of one
// [Queue]. The zero value is ready.
type Exporter struct {
	mu      sync.Mutex
	closed  bool
	places  map[driver.Context]*place
	primary map[int]driver.Context // retained, by device
	proven  provenIDs
	pools   pools
	staging staging
}

// Close gives up all streams, pages of words and memory for copies. Words that were not reached count
// as failed. It is called when no host needs anything any more.
func (x *Exporter) Close() error {
	x.mu.Lock()
	x.closed = true
	places, primary := x.places, x.primary
	x.places, x.primary = nil, nil
	x.mu.Unlock()
	x.staging.close()
	var err error
	for _, p := range places {
		err = errors.Join(err, p.close(false))
	}
	for device := range primary {
		err = errors.Join(err, driver.PrimaryCtxRelease(driver.Device(device)))
	}
	return err
}

// Queue gives a queue in the context that the memory belongs to. The caller closes it.
func (x *Exporter) Queue(p cuda.Pointer) (*Queue, error) {
	if p.Context() == 0 {
		return x.QueueOn(p.Device.Index)
	}
	return x.queueIn(driver.Context(p.Context()), p.Device.Index)
}

// QueueOn gives a queue in the primary context of a device, whose stream a framework can be given for
// its arrays there. It wraps [core.ErrDevice] if nobody uses that context.
func (x *Exporter) QueueOn(device int) (*Queue, error) {
	ctx, err := x.primaryOf(device)
	if err != nil {
		return nil, err
	}
	return x.queueIn(ctx, device)
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

func (x *Exporter) queueIn(ctx driver.Context, device int) (*Queue, error) {
	p, err := x.place(ctx, device)
	if err != nil {
		return nil, err
	}
	q, err := p.take()
	if err != nil {
		return nil, driver.Explain("order", fmt.Sprintf("device %d", device), err)
	}
	return q, nil
}

// place finds what the exporter has in a context. A handle can come again for another context, whose
// number differs.
func (x *Exporter) place(ctx driver.Context, device int) (*place, error) {
	id, err := driver.CtxID(ctx)
	if err != nil && !errors.Is(err, core.ErrUnsupported) {
		return nil, driver.Explain("order", fmt.Sprintf("device %d", device), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed()
	}
	p := x.places[ctx]
	if p != nil && p.id == id {
		return p, nil
	}
	gpus, err := cuda.Devices()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= len(gpus) {
		return nil, &core.Error{Op: "order", Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(gpus))}
	}
	if p != nil {
		_ = p.close(true) // only memory of the host is left
	}
	p = newPlace(ctx, id, gpus[device])
	if x.places == nil {
		x.places = make(map[driver.Context]*place)
	}
	x.places[ctx] = p
	return p, nil
}

func errClosed() error {
	return &core.Error{Op: "order", Kind: core.ErrClosed, Err: errors.New("the program's session has ended")}
}

// GPU gives the identity of a device of this process.
func (*Exporter) GPU(device int) (contract.UUID, error) {
	gpus, err := cuda.Devices()
	if err == nil && (device < 0 || device >= len(gpus)) {
		err = &core.Error{Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(gpus))}
	}
	if err != nil {
		return contract.UUID{}, err
	}
	return gpus[device].UUID, nil
}

// Mark is a point in a program's work on a GPU. Who made it holds it once.
type Mark struct {
	place *place
	event driver.Event // null: everything before it was done
	holds atomic.Int32 // but for the first
}

// Hold makes one more Close needed.
func (m *Mark) Hold() { m.holds.Add(1) }

// Mark marks what the stream was given until now: a CUstream, or 1 for the legacy default stream of
// the memory's context, or 2 for the calling thread's.
func (x *Exporter) Mark(p cuda.Pointer, stream uintptr) (*Mark, error) {
	q, err := x.Queue(p)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var m *Mark
	err = q.place.in(func() error {
		at, err := q.placeOf(x, driver.Stream(stream))
		if err != nil {
			return err
		}
		m, err = at.mark(func(e driver.Event) error { return driver.EventRecord(e, driver.Stream(stream)) })
		return err
	})
	return m, publishError(err)
}

// MarkAll marks all work that the memory's context was given until now. Where the driver cannot, it
// waits for that work.
func (x *Exporter) MarkAll(p cuda.Pointer) (*Mark, error) {
	q, err := x.Queue(p)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	at := q.place
	m, err := at.mark(func(e driver.Event) error { return driver.CtxRecordEvent(at.ctx, e) })
	if isUnsupported(err) {
		return &Mark{place: at}, publishError(at.in(driver.CtxSynchronize))
	}
	return m, publishError(err)
}

// mark makes an event in the place, and records it.
func (p *place) mark(record func(driver.Event) error) (m *Mark, err error) {
	err = p.in(func() error {
		e, err := driver.EventCreate(driver.EventDisableTiming)
		if err != nil {
			return err
		}
		m = &Mark{place: p, event: e}
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

// Close gives the mark up, if nobody else holds it. Queues that wait for it go on waiting.
func (m *Mark) Close() {
	if m.holds.Add(-1) < 0 && m.event != 0 {
		_ = m.place.in(func() error { return driver.EventDestroy(m.event) }) // or it went with its context
	}
}
