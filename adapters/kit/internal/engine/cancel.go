package engine

import (
	"context"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// Cancel implements calls.Worker.
func (w *worker) Cancel() calls.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.stage {
	case waiting:
		w.cancelled = true
		w.stop()
		return calls.NeverBegan
	case resting:
		return calls.Finished
	case running, starting:
	}
	w.cancelled = true
	w.mu.Unlock()
	defer w.mu.Lock() // for who unlocks it
	state := w.interrupt()
	w.host.wake() // the function may wait there
	return state
}

// interrupt ends what the function does. Whoever has the GIL may wait for the lock, so nothing that gives the GIL back is done under it.
func (w *worker) interrupt() (state calls.State) {
	state = calls.Finished
	for again := true; again; {
		again = false
		_ = w.interp.Do(context.Background(), func(g *py.GIL) error { // it fails if the interpreter ends, and the call with it
			future := py.Object(0)
			func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				switch {
				case w.stage == starting, w.stopped: // the coroutine is cancelled when it has begun
					state = calls.Interrupted
				case w.stage != running:
				case w.awaited != 0:
					state, future = calls.Interrupted, g.Keep(w.awaited)
				case w.runs.Interrupt(g, ndbridgeClass(g, "Cancelled")):
					state, w.raised = calls.Interrupted, true
				default:
					again = true
				}
			}()
			if future == 0 {
				return nil
			}
			defer g.Drop(future)
			_, err := g.CallMethod(future, "cancel", nil, nil)
			return err
		})
		if again {
			<-time.After(time.Millisecond) // the thread has just made another one
		}
	}
	return state
}

// await waits for what a coroutine gives. While that begins, no exception is raised: it would end code of ours, not the program's.
func (w *worker) await(g *py.GIL, coroutine py.Object) (py.Object, error) {
	w.begins(g)
	future, err := w.loop.begin(g, coroutine, w.blocked)
	if w.waits(future) && err == nil {
		_, err = g.CallMethod(future, "cancel", nil, nil)
	}
	if err != nil {
		return 0, err
	}
	defer w.waits(0)
	return g.CallMethod(future, "result", nil, nil)
}

// begins says that a coroutine is about to begin.
func (w *worker) begins(g *py.GIL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = starting
	if w.raised { // and has not reached the function
		w.runs.Calm(g)
	}
}

// waits says for what the function waits from now on, and whether it was cancelled before.
func (w *worker) waits(future py.Object) (cancelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage, w.awaited = running, future
	if future == 0 {
		w.stage = resting
		return false
	}
	w.stopped = w.cancelled
	return w.cancelled
}
