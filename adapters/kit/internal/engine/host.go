package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// hostCalls are the calls that the program makes of functions of its host's. The zero value is ready.
type hostCalls struct {
	mu      sync.Mutex
	closed  bool
	names   []string // of the functions, sorted
	last    uint64   // number of a call
	carried int      // calls that the host has
	queue   []*hostCall
	waiting map[*hostCall]struct{} // all that a thread waits for
	givenUp []uint64               // that the host has, and is to be told of
	changed chan struct{}          // closed when one of these changes; nil: nobody waits for that
	workers map[uint64]*worker     // whose function a thread runs
}

// errOver says that there is no host any more.
var errOver = &core.PythonError{Type: "ConnectionError", Message: "the host has ended the session"}

// HostFunctions gives the names of the functions that the host lets the program call, sorted. The error is one for Python.
func (p *Program) HostFunctions() ([]string, error) {
	h := &p.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errOver
	}
	return h.names, nil
}

// tell wakes those who wait for a change. The caller has the lock.
func (h *hostCalls) tell() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// runs notes that a thread runs a worker's function. The result undoes it.
func (h *hostCalls) runs(thread uint64, w *worker) (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.workers == nil {
		h.workers = make(map[uint64]*worker)
	}
	before := h.workers[thread]
	h.workers[thread] = w
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.workers[thread] = before; before == nil {
			delete(h.workers, thread)
		}
	}
}

// begin notes a call. One within a call of the host's that was made for another one goes first, and may use all lanes.
func (h *hostCalls) begin(thread uint64, c *hostCall) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errOver
	}
	c.outer = h.workers[thread]
	c.inner = c.outer != nil && c.outer.carries != nil
	at := len(h.queue)
	if c.inner {
		at = 0
		for at < len(h.queue) && h.queue[at].inner {
			at++
		}
		if h.carried+at >= calls.MaxLanes {
			return &core.PythonError{
				Type: "RecursionError", Message: fmt.Sprintf("%d calls of the host wait for each other, and there can be no more", h.carried+at),
			}
		}
	}
	h.last++
	c.number = h.last
	h.queue = slices.Insert(h.queue, at, c)
	if h.waiting == nil {
		h.waiting = make(map[*hostCall]struct{})
	}
	h.waiting[c] = struct{}{}
	h.tell()
	return nil
}

// end says that no thread waits for a call any more. known reports that the host has it, or had it.
func (h *hostCalls) end(c *hostCall, answered bool) (known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, c)
	if i := slices.Index(h.queue, c); i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
		return false
	}
	if !answered {
		h.givenUp = append(h.givenUp, c.number)
		h.tell()
	}
	return true
}

// next waits for a call for the host, or for one that was given up.
func (h *hostCalls) next(ctx context.Context) (c *hostCall, givenUp uint64, err error) {
	for {
		h.mu.Lock()
		switch {
		case h.closed:
			h.mu.Unlock()
			return nil, 0, &core.Error{Op: "call", Kind: core.ErrUnavailable, Err: errors.New("no more calls are served")}
		case len(h.givenUp) > 0:
			givenUp = h.givenUp[0]
			h.givenUp = slices.Delete(h.givenUp, 0, 1)
			h.mu.Unlock()
			return nil, givenUp, nil
		case len(h.queue) > 0 && (h.queue[0].inner || h.carried < calls.MaxLanes/2):
			c = h.queue[0]
			h.queue = slices.Delete(h.queue, 0, 1)
			h.carried++
			h.mu.Unlock()
			return c, 0, nil
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, calls.ErrCancelled()
		}
	}
}

// wake lets all threads that wait look whether something was raised in them.
func (h *hostCalls) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.waiting {
		c.news()
	}
}

// close ends all calls. No more begin.
func (h *hostCalls) close() {
	h.mu.Lock()
	h.closed = true
	h.tell()
	h.mu.Unlock()
	h.wake()
}

func (h *hostCalls) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// offer takes the names of the host's functions.
func (w *worker) offer(r *calls.Request) error {
	var names []string
	if err := values.Decode(r.Values, &names, nil); err != nil {
		return err
	}
	slices.Sort(names)
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	w.host.names = names
	return nil
}

// carry gives the host the next call.
func (w *worker) carry(ctx context.Context, a *calls.Answer) error {
	if w.carries != nil {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: errors.New("the lane has a call that was not answered")}
	}
	c, givenUp, err := w.host.next(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		a.Kind, a.Target = calls.Over, givenUp
		return nil
	}
	w.carries = c
	a.Target, a.Values, a.Leases = c.number, c.form, c.leases
	return nil
}

// answer gives the thread that waits the result, and waits until it has it.
func (w *worker) answer(r *calls.Request) error {
	c := w.carries
	if c == nil || c.number != r.Target {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: fmt.Errorf("a result of call %d, which the lane has not", r.Target)}
	}
	w.carries = nil
	result := &hostResult{worker: w, request: r, done: make(chan struct{})}
	if c.give(result) {
		<-result.done
	}
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	w.host.carried--
	w.host.givenUp = slices.DeleteFunc(w.host.givenUp, func(n uint64) bool { return n == r.Target })
	w.host.tell()
	return nil
}

// CallHost calls a function of the host's for the thread that Python called us on, with the GIL: args is a tuple and kw a dict. It gives a
// reference, or 0 with Python's exception set.
func (p *Program) CallHost(name, args, kw py.Object) (result py.Object) {
	t := p.interp.Here()
	raised := t.Within(func(g *py.GIL) {
		err := p.callHost(g, t, name, args, kw, func(o py.Object) { result = g.Keep(o) })
		if failed, ok := errors.AsType[*hostError](err); ok && failed.class(g) != 0 {
			g.RaiseAs(failed.class(g), failed.text)
		} else if err != nil {
			g.Raise(err)
		}
	})
	if raised && result != 0 {
		_ = p.interp.Within(func(g *py.GIL) error { g.Drop(result); return nil }) // never fails
		return 0
	}
	return result
}

// hostError is an exception of the module ndbridge.
type hostError struct{ name, text string }

func (e *hostError) Error() string { return e.text }

func (e *hostError) class(g *py.GIL) py.Object { return ndbridgeClass(g, e.name) }

// callHost is CallHost. use gets the result. Without an error and without a result there is an exception of Python's (py.GIL.Ends).
func (p *Program) callHost(g *py.GIL, t *py.Thread, name, args, kw py.Object, use func(o py.Object)) error {
	all, err := g.NewTuple(name, args, kw)
	if err != nil {
		return err
	}
	var a calls.Answer
	if err = p.write(context.Background(), g, "(function, arguments, keyword arguments)", all, &a, nil); err != nil || g.Ends() {
		p.strays(g, &a)
		return err
	}
	c := &hostCall{thread: t, form: a.Values, leases: a.Leases}
	if err = p.host.begin(g.ID(), c); err != nil {
		p.strays(g, &a)
		return err
	}
	answered, err := c.wait(g, &p.host, use)
	if !p.host.end(c, answered) {
		p.strays(g, &a)
	}
	c.refuse()
	return err
}

// strays gives back leases that nobody gets.
func (p *Program) strays(g *py.GIL, a *calls.Answer) {
	g.Unlocked(func() {
		for i := range a.Leases {
			_ = p.Release(context.Background(), a.Leases[i].ID) // nobody is there to be told
		}
	})
}
