package program

import (
	"context"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// holds gives Python's things back when leases end. That needs the GIL, for which Release must not
// wait, and each turn of which costs the program time: so what has come together meanwhile goes back
// in one turn.
type holds struct {
	interp *py.Interp

	mu      sync.Mutex
	pending []hold
	closed  bool
	stop    context.CancelFunc // of the goroutine that runs while something is pending
	running sync.WaitGroup
}

func (h *holds) add(things []hold) {
	if len(things) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return // the program is ending, and everything with it
	}
	h.pending = append(h.pending, things...)
	if h.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		h.running.Go(func() { h.run(ctx) })
	}
}

func (h *holds) run(ctx context.Context) {
	for {
		things := h.take()
		if len(things) == 0 {
			return
		}
		err := h.interp.Do(ctx, func(g *py.GIL) error {
			for _, t := range things {
				t.drop(g)
			}
			return nil
		})
		if err != nil { // the interpreter is ending: its things are not ours to touch any more
			h.close()
		}
	}
}

func (h *holds) take() []hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	things := h.pending
	h.pending = nil
	if len(things) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
	return things
}

// close forgets what is pending.
func (h *holds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.pending = nil
	if h.stop != nil {
		h.stop()
	}
}
