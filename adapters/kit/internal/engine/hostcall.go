package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/values"
)

// signalsWait is how long a signal may stay unhandled that comes just before the main thread sleeps, and otherWait how long an exception
// that others than we raise in another thread.
const (
	signalsWait = 100 * time.Millisecond
	otherWait   = time.Second
)

// hostCall is a call of the program's that waits for its host. Meanwhile its thread runs what the host calls for it.
type hostCall struct {
	number uint64
	form   []byte
	leases []contract.Lease
	thread *py.Thread
	outer  *worker // whose function makes the call; nil: no function that the host has called
	inner  bool    // that function was called for another hostCall

	word atomic.Uint32 // grows with each piece of news for the thread, which sleeps on it

	mu     sync.Mutex
	over   bool // the thread takes no more
	call   *threadCall
	result *hostResult
}

// hostResult is what the host has answered.
type hostResult struct {
	worker  *worker
	request *calls.Request // valid until done is closed
	done    chan struct{}
}

func (c *hostCall) news() {
	c.word.Add(1)
	shm.Wake(&c.word, 1)
}

// add implements caller.
func (c *hostCall) add(w *worker, f func(g *py.GIL) error) *threadCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	c.call = &threadCall{worker: w, f: f, done: make(chan struct{})} // a lane has one at a time
	c.news()
	return c.call
}

// withdraw implements caller.
func (c *hostCall) withdraw(call *threadCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.call != call {
		return false
	}
	c.call = nil
	return true
}

// give gives the thread the result, unless it takes no more.
func (c *hostCall) give(r *hostResult) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.result = r
	c.news()
	return true
}

// take takes what there is for the thread.
func (c *hostCall) take() (call *threadCall, result *hostResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, result = c.call, c.result
	c.call, c.result = nil, nil
	return call, result
}

// refuse says that the thread takes no more.
func (c *hostCall) refuse() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	call, result := c.take()
	if call != nil {
		call.refuse = true
		close(call.done)
	}
	if result != nil {
		close(result.done)
	}
}

// wait waits for the result, which use gets. Without an error and without a result there is an exception of Python's. answered reports that
// the host has answered.
func (c *hostCall) wait(g *py.GIL, h *hostCalls, use func(o py.Object)) (answered bool, err error) {
	pause := otherWait
	if syscall.Gettid() == syscall.Getpid() {
		pause = signalsWait
	}
	for {
		before := c.word.Load()
		call, result := c.take()
		switch {
		case call != nil:
			c.run(g, call)
			if g.Ends() {
				return false, nil
			}
			if c.outer != nil && c.outer.passed(g) {
				return false, &hostError{"Cancelled", ""}
			}
			continue
		case result != nil:
			defer close(result.done)
			o, err := result.build(g)
			if err == nil {
				use(o)
			}
			return true, err
		case h.isClosed():
			return false, errOver
		}
		if raised, err := g.Poll(); raised || err != nil {
			return false, err
		}
		g.Unlocked(func() { shm.Sleep(&c.word, before, pause) })
	}
}

// run runs what the host calls meanwhile.
func (c *hostCall) run(g *py.GIL, call *threadCall) {
	defer close(call.done)
	call.worker.move(c.thread)
	call.err = g.Nested(func() error { return call.f(g) })
}

// passed reports whether the worker's function was to be interrupted, and the exception may have come to another one, which it had called by
// way of the host. The function gets one of its own then.
func (w *worker) passed(g *py.GIL) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.raised {
		return false
	}
	w.runs.Calm(g)
	return true
}

// build makes the object that the host has answered, or its error.
func (r *hostResult) build(g *py.GIL) (py.Object, error) {
	if r.request.Flags&calls.FlagFailed != 0 {
		var text string
		if err := values.Decode(r.request.Values, &text, nil); err != nil {
			return 0, &core.Error{Op: "call", Kind: core.ErrProtocol, Err: errors.Join(errors.New("an error that is none"), err)}
		}
		return 0, &hostError{"HostError", text}
	}
	return r.worker.build(g, values.NewReader(r.request.Values), r.request, "")
}
