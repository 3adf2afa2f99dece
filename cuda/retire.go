package cuda

import (
	"errors"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// record marks the work that the GPU's primary context has now. It gives null if the driver cannot:
// then all work is waited for, that which comes later too.
func (g *gpu) record() driver.Event {
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
func (g *gpu) wait(e driver.Event) {
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

// free takes an event that is not in use, or null if there is none.
func (g *gpu) free() driver.Event {
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

// put gives an event back; null is none.
func (g *gpu) put(e driver.Event) {
	if e == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
}

// end lets go of the GPU.
func (g *gpu) end() error {
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

// retirements are memories that nobody uses any more but the GPU. One goroutine waits for that, while
// there are any.
type retirements struct {
	mu    sync.Mutex
	queue []retirement
	done  chan struct{} // closed by the goroutine at its end; nil: there is none
}

type retirement struct {
	memory *memory
	event  driver.Event
}

func (r *retirements) add(m *memory, e driver.Event) {
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
		g := next.memory.gpu
		g.wait(next.event)
		g.put(next.event)
		// Before the release: a program may free the memory as soon as it has its lease.
		_ = next.memory.close() // of what is open never fails, and there is nobody to tell
		next.memory.release()
	}
}

// wait waits until there are none, for a while and as long as it is not vain, and says whether that is so.
func (r *retirements) wait(d time.Duration, vain func() bool) bool {
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
		if vain() {
			return false
		}
	}
	return false
}
