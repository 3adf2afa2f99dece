package imports

import (
	"errors"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// record marks the work that the GPU's primary context has now. It returns null if the driver cannot: then
// wait waits for later work, too.
func (g *device) record() driver.Event {
	e := g.free()
	err := g.Do(func() (err error) {
		if e == 0 {
			if e, err = driver.EventCreate(driver.EventDisableTiming | driver.EventBlockingSync); err != nil {
				return err
			}
		}
		return driver.CtxRecordEvent(g.Context, e)
	})
	if err != nil {
		g.put(e)
		return 0
	}
	return e
}

// wait returns when the GPU has done what was marked. A context in which work has failed has none left.
func (g *device) wait(e driver.Event) {
	pause := time.Millisecond
	for {
		err := g.Do(func() error {
			if e == 0 {
				return driver.CtxSynchronize()
			}
			return driver.EventSynchronize(e)
		})
		if d, ok := errors.AsType[*driver.Error](err); !ok || d.Code != driver.StreamCaptureUnsupported {
			return
		}
		<-time.After(pause) // until nobody captures
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// free takes an event that is not in use. It returns null if there is none.
func (g *device) free() driver.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.events)
	if n == 0 {
		return 0
	}
	e := g.events[n-1]
	g.events = g.events[:n-1]
	return e
}

// put returns an event, which may be null.
func (g *device) put(e driver.Event) {
	if e == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

// end releases the GPU.
func (g *device) end() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.Do(func() error {
		var errs []error
		for _, e := range g.events {
			errs = append(errs, driver.EventDestroy(e))
		}
		return errors.Join(errs...)
	})
	g.events = nil
	return errors.Join(err, g.Close())
}

// retirements are memories that only the GPU still uses. While there are any, one goroutine waits for the GPU.
type retirements struct {
	mu    sync.Mutex
	queue []retirement
	done  chan struct{} // closed by the goroutine at its end; nil: there is none
}

type retirement struct {
	memory *Memory
	event  driver.Event
}

func (r *retirements) add(m *Memory, e driver.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, retirement{m, e})
	if r.done == nil {
		r.done = make(chan struct{})
		go r.run(r.done)
	}
}

func (r *retirements) run(done chan struct{}) {
	defer close(done)
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.queue, r.done = nil, nil
			r.mu.Unlock()
			return
		}
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		g := next.memory.device
		g.wait(next.event)
		g.put(next.event)
		// Before the release: a program may free the memory as soon as it has its lease.
		_ = next.memory.close() // of what is open never fails, and there is nobody to tell
		next.memory.release()
	}
}

// wait waits until there are none, until d passes, or until giveUp reports true. It reports whether there are none.
func (r *retirements) wait(d time.Duration, giveUp func() bool) bool {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done == nil {
		return true
	}
	const look = 10 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); {
		select {
		case <-done:
			return true
		case <-ticker.C:
		}
		if giveUp() {
			return false
		}
	}
	return false
}
