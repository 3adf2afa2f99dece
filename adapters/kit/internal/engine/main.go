package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// mainThread is Python's main thread, which runs what hosts call while the program has given it for that (ndbridge.serve).
type mainThread struct {
	mu     sync.Mutex
	thread *py.Thread // nil: it does something else
	wake   func()
	calls  []*threadCall // that have not begun
}

// threadCall is what a worker wants done on a thread of the program's.
type threadCall struct {
	worker *worker
	f      func(g *py.GIL) error
	done   chan struct{} // closed when the rest is set
	refuse bool          // it was not run: the thread does something else again
	err    error
}

// caller is a thread of the program's that runs functions for workers.
type caller interface {
	// add gives the thread something to run; nil if it does something else.
	add(w *worker, f func(g *py.GIL) error) *threadCall
	// withdraw takes something back, unless it has begun.
	withdraw(c *threadCall) bool
}

// Serve makes the calling thread, which holds the GIL, run what the host calls, until ServeEnd: wake is called when there is something to
// run, and then ServeCall must be. The error is one for Python.
func (p *Program) Serve(wake func()) error {
	m := p.main
	if syscall.Gettid() != syscall.Getpid() {
		return &core.PythonError{Type: "RuntimeError", Message: "serve: this is not the main thread"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.thread != nil {
		return &core.PythonError{Type: "RuntimeError", Message: "serve: the main thread serves already, and runs a call"}
	}
	m.thread, m.wake = p.interp.Here(), wake
	return nil
}

// ServeCall runs what has waited longest, if anything. It reports that an exception was raised which is to end the program, and is
// Python's again.
func (p *Program) ServeCall() (raised bool) {
	m := p.main
	m.mu.Lock()
	if len(m.calls) == 0 {
		m.mu.Unlock()
		return false
	}
	c, thread := m.calls[0], m.thread
	m.calls = slices.Delete(m.calls, 0, 1)
	if len(m.calls) > 0 {
		m.wake() // again, when signals were handled
	}
	m.mu.Unlock()
	defer close(c.done)
	c.worker.move(thread)
	return thread.Within(func(g *py.GIL) { c.err = c.f(g) })
}

// ServeEnd says that the main thread does something else from now on. What has not begun is run by workers, or, if the session is over,
// not at all.
func (p *Program) ServeEnd(over bool) {
	m := p.main
	m.mu.Lock()
	waiting := m.calls
	m.thread, m.calls = nil, nil
	m.mu.Unlock()
	for _, c := range waiting {
		c.refuse = !over
		if over {
			c.err = &core.Error{Op: "call", Kind: core.ErrUnavailable, Err: errors.New("the session has ended")}
		}
		close(c.done)
	}
}

// add implements caller.
func (m *mainThread) add(w *worker, f func(g *py.GIL) error) *threadCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.thread == nil {
		return nil
	}
	c := &threadCall{worker: w, f: f, done: make(chan struct{})}
	m.calls = append(m.calls, c)
	m.wake()
	return c
}

// withdraw implements caller.
func (m *mainThread) withdraw(c *threadCall) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.calls, c)
	if i < 0 {
		return false
	}
	m.calls = slices.Delete(m.calls, i, i+1)
	return true
}

// do runs f with the GIL held: on the thread that waits for the host, if the worker is a lane with a call of that thread's, on the main
// thread, if the program has given it for calls, and otherwise on the worker's own. If ctx ends before f has begun, it never does.
func (w *worker) do(ctx context.Context, f func(g *py.GIL) error) error {
	by := []caller{w.main}
	if w.carries != nil {
		by = []caller{w.carries, w.main}
	}
	for _, thread := range by {
		c := thread.add(w, f)
		if c == nil {
			continue
		}
		w.holds.Soon() //nolint:contextcheck // it outlives the call; and that thread may be busy
		select {
		case <-c.done:
		case <-ctx.Done():
			if thread.withdraw(c) {
				return calls.ErrCancelled()
			}
			<-c.done
		}
		if !c.refuse {
			return c.err
		}
	}
	return w.thread.Do(func(g *py.GIL) error {
		w.holds.Drop(g) // what has ended before: of the last result, too, whoever gave that back
		return f(g)
	})
}

// move says on which thread the worker's function is going to run.
func (w *worker) move(t *py.Thread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = t
}
