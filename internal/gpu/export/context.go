package export

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// contextState is what an exporter has in one context.
type contextState struct {
	ctx    driver.Context
	id     uint64 // of the context, or 0 where the driver has none
	device gpu.Device

	captures Captures // of the exporter

	ordering sync.Mutex // is held by who uses ordered
	ordered  *Queue     // comes after the whole context, time and again; nil: nobody wanted that yet

	mu      sync.Mutex
	closed  bool
	gone    bool     // its context is there no more
	idle    []*Queue // given back, the latest last
	pages   []*Page
	slots   []*slot // on the pages, in order
	free    []*slot // those that no queue has
	noWords bool    // the device cannot write them, or its driver does not let it
	stop    context.CancelFunc
	watch   sync.WaitGroup
}

func newContextState(ctx driver.Context, id uint64, device gpu.Device) *contextState {
	return &contextState{ctx: ctx, id: id, device: device, noWords: !device.StreamMemOps || !device.Registration}
}

// in runs f with the context current.
func (c *contextState) in(f func() error) error { return driver.With(c.ctx, f) }

// whole runs f, which makes a driver call that concerns the whole context, while no graph is captured. It returns
// the error that the driver would if one is: the call would break the capture.
func (c *contextState) whole(f func() error) error {
	if c.captures == nil {
		return f()
	}
	if !c.captures.Hold() {
		return &driver.Error{Call: "cuCtxRecordEvent", Code: driver.StreamCaptureUnsupported, Name: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}
	}
	defer c.captures.Let()
	return f()
}

// close frees everything in the context. If gone is set, the context has ended, and another one may
// have its handle.
func (c *contextState) close(gone bool) error {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	if c.ordered != nil {
		c.ordered.Close()
		c.ordered = nil
	}
	c.mu.Lock()
	c.closed, c.gone = true, gone
	if c.stop != nil {
		c.stop()
	}
	broken := gone || c.in(func() error {
		for _, q := range c.idle {
			q.destroy()
		}
		return nil
	}) != nil
	var errs []error
	for _, page := range c.pages {
		page.endReads()
		switch unwritten := c.unwritten(page); {
		case broken:
			for _, s := range unwritten {
				s.fail(driver.InvalidContext)
			}
			errs = append(errs, page.close())
		case len(unwritten) == 0:
			errs = append(errs, c.in(page.close))
		default: // a stream is yet to write to it: it stays where it is
		}
	}
	c.idle, c.pages, c.slots, c.free = nil, nil, nil, nil
	c.mu.Unlock()
	c.watch.Wait()
	return errors.Join(errs...)
}

// done reports whether a fence word needs no more waiting: it was reached, or never will be.
func (c *contextState) done(w *FenceWord) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || w.Reached() // a closed state has no pages
}

// left reports whether the context is known to have ended, with everything that was made in it.
func (c *contextState) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// unwritten returns the slots that streams have yet to write, on one page or, if page is nil, on all.
// The caller holds mu.
func (c *contextState) unwritten(page *Page) (late []*slot) {
	for _, s := range c.slots {
		if (page == nil || s.page == page) && !s.reached() {
			late = append(late, s)
		}
	}
	return late
}

// maxOutstanding is how many fences may wait for all work of the context. From 57 on, the driver was seen to wait, and
// to let no other call of the process in.
const maxOutstanding = 56

// full reports whether no more fences may wait for all work of the context.
func (c *contextState) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var outstanding uint32
	for _, s := range c.slots {
		outstanding += s.outstanding()
	}
	return outstanding >= maxOutstanding
}

// maxIdle bounds the streams that are kept for later. More exist only while as many hand-overs are
// under way.
const maxIdle = 8

// take returns a queue whose stream has no work, so that no hand-over waits for the work of another.
func (c *contextState) take() (q *Queue, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed()
	}
	sound := func(q *Queue) bool { return !q.broken }
	found := -1
	for i, q := range slices.Backward(c.idle) {
		if sound(q) && q.resting() {
			found = i
			break
		}
	}
	if found < 0 && len(c.idle) >= maxIdle {
		found = slices.IndexFunc(c.idle, sound)
	}
	if found >= 0 {
		q = c.idle[found]
		c.idle = slices.Delete(c.idle, found, found+1)
		return q, nil
	}
	q = &Queue{state: c}
	err = c.in(func() error {
		if q.event, err = driver.EventCreate(driver.EventDisableTiming); err != nil {
			return err
		}
		if q.stream, err = driver.StreamCreate(); err != nil {
			_ = driver.EventDestroy(q.event)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// fenceAll fences all work that the context was given until now. The queue is always the same: what it was given before waits
// for nothing else.
func (c *contextState) fenceAll() (w *FenceWord, err error) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	if c.full() {
		return nil, errFull
	}
	if c.ordered == nil || c.ordered.broken {
		q, err := c.take()
		if err != nil {
			return nil, err
		}
		if c.ordered != nil {
			c.ordered.Close()
		}
		c.ordered = q
	}
	err = c.in(func() error {
		err := c.ordered.recordContext()
		if err == nil {
			w = c.ordered.writeWord()
		}
		return err
	})
	return w, err
}

// giveBack takes a queue back, and destroys queues beyond maxIdle. It keeps a stream that has work:
// without it nothing would tell whether the stream still writes its fence word.
func (c *contextState) giveBack(q *Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, q)
	spare := len(c.idle) - maxIdle
	c.idle = slices.DeleteFunc(c.idle, func(q *Queue) bool {
		if !c.closed && (!q.broken && spare <= 0 || !q.resting()) {
			return false
		}
		spare--
		if q.slot != nil && !c.closed {
			c.free = append(c.free, q.slot)
		}
		_ = c.in(func() error { q.destroy(); return nil }) // or it went with its context
		return true
	})
}

const (
	// lookInterval is how often a context is checked for faults while its streams have fence words to
	// write.
	lookInterval = 20 * time.Millisecond

	// calmLooks is how many times in a row no word is pending before the looking ends. To begin again takes a
	// hand-over 20 us and more.
	calmLooks = 50
)

// expect starts a goroutine that watches the context until all fence words are reached. The caller
// holds mu.
func (c *contextState) expect() {
	if c.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.watch.Go(func() { c.lookAfter(ctx) })
}

// lookAfter runs while fence words are pending. The streams of a broken context write none, and whoever
// waits for one would wait for ever.
func (c *contextState) lookAfter(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for calm := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.look() {
			calm = 0
		} else if calm++; c.calm(calm) {
			return
		}
	}
}

// look reports whether fence words are still pending.
func (c *contextState) look() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.unwritten(nil)
	if c.closed || len(late) == 0 {
		return false
	}
	err := c.in(func() error {
		_, err := driver.StreamQuery(late[0].stream)
		return err
	})
	if err != nil {
		c.giveUp(err)
	}
	return err == nil
}

// calm reports whether the looking ends after so many looks in a row at which no word was pending.
func (c *contextState) calm(looks int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && (looks < calmLooks || len(c.unwritten(nil)) > 0) {
		return false
	}
	c.stop()
	c.stop = nil
	return true
}

// giveUp ends the waiting for fence words, and their use: a context breaks as a whole, and for good.
func (c *contextState) giveUp(err error) {
	code := driver.InvalidContext
	if e, ok := errors.AsType[*driver.Error](err); ok {
		code = e.Code
	}
	for _, s := range c.unwritten(nil) {
		s.fail(code)
	}
	c.noWords = true
}
