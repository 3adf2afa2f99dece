package imports

import (
	"slices"
	"sync"
	"time"
)

// retirements are closed memories that streams still use. While there are any, one goroutine looks whether their
// streams are done with them. No stream delays the memories that others used.
type retirements struct {
	mu    sync.Mutex
	queue []*Memory
	done  chan struct{} // closed by the goroutine at its end; nil: there is none
}

func (r *retirements) add(m *Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, m)
	if r.done == nil {
		r.done = make(chan struct{})
		go r.run(r.done)
	}
}

const (
	// How long run rests: nobody tells the CPU what a GPU has done.
	shortest = 20 * time.Microsecond
	longest  = 2 * time.Millisecond
)

func (r *retirements) run(done chan struct{}) {
	defer close(done)
	var waiting []*Memory
	for rest := shortest; ; rest = min(2*rest, longest) {
		r.mu.Lock()
		fresh := len(r.queue)
		waiting = append(waiting, r.queue...)
		r.queue = nil
		if len(waiting) == 0 {
			r.done = nil
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, (*Memory).retire)
		if fresh > 0 || len(waiting) < before {
			rest = shortest
		}
		if len(waiting) > 0 {
			<-time.After(rest)
		}
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
