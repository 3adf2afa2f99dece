package export

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// place is what an exporter has in one context.
type place struct {
	ctx    driver.Context
	id     uint64 // of the context, or 0 where the driver has none
	device cuda.DeviceInfo

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

func newPlace(ctx driver.Context, id uint64, device cuda.DeviceInfo) *place {
	return &place{ctx: ctx, id: id, device: device, noWords: !device.StreamWords || !device.Registration}
}

// in runs f with the context current. It does not break captures of streams on other threads by calls
// that are forbidden while they last.
func (p *place) in(f func() error) error {
	return driver.With(p.ctx, func() error {
		defer driver.Relaxed()()
		return f()
	})
}

// close gives up everything in the context. gone says that the context is there no more, so that its
// handle may be that of another one.
func (p *place) close(gone bool) error {
	p.mu.Lock()
	p.closed, p.gone = true, gone
	if p.stop != nil {
		p.stop()
	}
	broken := gone || p.in(func() error {
		for _, q := range p.idle {
			q.destroy()
		}
		return nil
	}) != nil
	var errs []error
	for _, page := range p.pages {
		switch unwritten := p.unwritten(page); {
		case broken:
			for _, s := range unwritten {
				s.fail(driver.InvalidContext)
			}
			errs = append(errs, page.close())
		case len(unwritten) == 0:
			errs = append(errs, p.in(page.close))
		default: // a stream is yet to write to it: it stays where it is
		}
	}
	p.idle, p.pages, p.slots, p.free = nil, nil, nil, nil
	p.mu.Unlock()
	p.watch.Wait()
	return errors.Join(errs...)
}

// done says whether nobody has to wait for a word any more: it was reached, or will never be.
func (p *place) done(w *Word) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || w.reached() // the pages of a place that was closed are not there any more
}

// left says whether the context is known to be there no more, with all that was made in it.
func (p *place) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// unwritten gives the slots that streams are yet to write: all, or those of a page. p is locked.
func (p *place) unwritten(page *Page) (late []*slot) {
	for _, s := range p.slots {
		if (page == nil || s.page == page) && !s.reached() {
			late = append(late, s)
		}
	}
	return late
}

// maxIdle bounds the streams that are kept for later. More are made only while as many hand-overs are
// under way.
const maxIdle = 8

// take gives a queue whose stream has nothing to do, so that no hand-over waits for another's work.
func (p *place) take() (q *Queue, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed()
	}
	sound := func(q *Queue) bool { return !q.broken }
	found := -1
	for i, q := range slices.Backward(p.idle) {
		if sound(q) && q.resting() {
			found = i
			break
		}
	}
	if found < 0 && len(p.idle) >= maxIdle {
		found = slices.IndexFunc(p.idle, sound)
	}
	if found >= 0 {
		q = p.idle[found]
		p.idle = slices.Delete(p.idle, found, found+1)
		return q, nil
	}
	q = &Queue{place: p}
	err = p.in(func() error {
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

// giveBack takes a queue back, and ends those that nobody needs. A stream that has something to do is not
// ended before: its word would not tell any more whether it is written at all.
func (p *place) giveBack(q *Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, q)
	spare := len(p.idle) - maxIdle
	p.idle = slices.DeleteFunc(p.idle, func(q *Queue) bool {
		if !p.closed && (!q.broken && spare <= 0 || !q.resting()) {
			return false
		}
		spare--
		if q.slot != nil && !p.closed {
			p.free = append(p.free, q.slot)
		}
		_ = p.in(func() error { q.destroy(); return nil }) // or it went with its context
		return true
	})
}

// lookInterval is how often contexts are looked after while streams have words to write: whether they
// are still sound.
const lookInterval = 20 * time.Millisecond

// expect watches until all words are reached. p is locked.
func (p *place) expect() {
	if p.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.watch.Go(func() { p.lookAfter(ctx) })
}

// lookAfter runs while words are pending. A stream of a context that broke writes none any more, and
// whoever waits for it would wait for ever.
func (p *place) lookAfter(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !p.look() {
			return
		}
	}
}

// look reports whether words are still pending.
func (p *place) look() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	late := p.unwritten(nil)
	if len(late) > 0 {
		err := p.in(func() error {
			_, err := driver.StreamQuery(late[0].stream)
			return err
		})
		if err == nil {
			return true
		}
		p.giveUp(err)
	}
	p.stop()
	p.stop = nil
	return false
}

// giveUp ends the waiting for words, and the use of words: contexts break as a whole, and for good.
func (p *place) giveUp(err error) {
	code := driver.InvalidContext
	if e, ok := errors.AsType[*driver.Error](err); ok {
		code = e.Code
	}
	for _, s := range p.unwritten(nil) {
		s.fail(code)
	}
	p.noWords = true
}
