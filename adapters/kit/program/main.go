package program

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
	calls  []*mainCall // that have not begun
}

// mainCall is what a worker wants done on the main thread.
type mainCall struct {
	worker *worker
	f      func(g *py.GIL) error
	done   chan struct{} // closed when the rest is set
	refuse bool          // it was not run: the main thread does something else again
	err    error
}

// Serve makes the calling thread, which holds the GIL, run what the host calls, until ServeEnd: wake is called when there is something to
// run, and then ServeCall must be. The error is one for Python.
func (p *Program) Serve(wake func()) error {
	m := &p.main
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
	m := &p.main
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
	m := &p.main
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

// add gives the main thread something to run, or nil if it does something else.
func (m *mainThread) add(w *worker, f func(g *py.GIL) error) *mainCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.thread == nil {
		return nil
	}
	c := &mainCall{worker: w, f: f, done: make(chan struct{})}
	m.calls = append(m.calls, c)
	m.wake()
	return c
}

// withdraw takes something back, unless it has begun.
func (m *mainThread) withdraw(c *mainCall) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.calls, c)
	if i < 0 {
		return false
	}
	m.calls = slices.Delete(m.calls, i, i+1)
	return true
}

// do runs f with the GIL held: on the main thread, if the program has given it for that, and otherwise on the worker's own. If ctx ends
// before f has begun, it never does.
func (w *worker) do(ctx context.Context, f func(g *py.GIL) error) error {
	c := w.main.add(w, f)
	if c == nil {
		return w.thread.Do(f)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if w.main.withdraw(c) {
			return calls.ErrCancelled()
		}
		<-c.done
	}
	if c.refuse {
		return w.thread.Do(f)
	}
	return c.err
}

// move says on which thread the worker's function is going to run.
func (w *worker) move(t *py.Thread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = t
}
