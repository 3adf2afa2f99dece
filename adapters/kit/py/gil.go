package py

import (
	"slices"
	"sync/atomic"
)

// GIL is the proof of holding the interpreter's lock, and the scope of the references that its
// methods return. It is valid only inside the function that it was handed to, and only on the
// goroutine that runs that function.
type GIL struct {
	interp  *Interp
	thread  *threadState
	owned   []Object
	buffers []*Buffer
	outcome *atomic.Int32 // of the job that runs, or nil if Python called us
	ending  *exception    // takes a KeyboardInterrupt or SystemExit that f meets; nil: it is like any other exception
}

func (g *GIL) own(o Object) Object {
	g.owned = append(g.owned, o)
	return o
}

// take makes a new reference part of the scope, or gives the error that Python set instead of it.
func (g *GIL) take(o Object) (Object, error) {
	if o == 0 {
		return 0, g.failure()
	}
	return g.own(o), nil
}

// Share makes o, which somebody else holds, live at least as long as the scope.
func (g *GIL) Share(o Object) {
	capiIncref(o)
	g.own(o)
}

// Keep makes o outlive the scope: the caller holds a reference from now on, and gives it back with
// Drop in this or in a later scope.
func (g *GIL) Keep(o Object) Object {
	capiIncref(o)
	return o
}

// Drop gives back a reference that Keep gave. Python may run any code then.
func (g *GIL) Drop(o Object) { capiDecref(o) }

// DropAll is Drop of all these.
func (g *GIL) DropAll(all []Object) {
	if len(all) > 0 {
		capiDecrefAll(all)
	}
}

// DropOnMain is Drop for objects that only Python's main thread may end: it gives the reference back
// there, when that thread next runs Python code.
func (g *GIL) DropOnMain(o Object) { capiDecrefOnMain(o) }

// Nested runs f, and gives back at its end what f's calls returned. Objects from before stay.
func (g *GIL) Nested(f func() error) error {
	owned, buffers := len(g.owned), len(g.buffers)
	defer func() { g.release(owned, buffers) }()
	return f()
}

// Result is Nested for an f that gives an object, which becomes one of the outer scope's.
func (g *GIL) Result(f func() (Object, error)) (o Object, err error) {
	owned, buffers := len(g.owned), len(g.buffers)
	defer func() {
		mine := o
		if last := len(g.owned) - 1; mine != 0 && last >= owned && g.owned[last] == mine {
			g.owned = g.owned[:last]
		} else if mine != 0 {
			capiIncref(mine)
		}
		g.release(owned, buffers)
		if mine != 0 {
			g.own(mine)
		}
	}()
	return f()
}

// release gives back what came after the marks, newest first. Giving one back may run Python code,
// but none that could add to this scope.
func (g *GIL) release(owned, buffers int) {
	for i := len(g.buffers) - 1; i >= buffers; i-- {
		g.buffers[i].Release()
	}
	g.buffers = g.buffers[:buffers]
	if len(g.owned) == owned {
		return
	}
	slices.Reverse(g.owned[owned:])
	capiDecrefAll(g.owned[owned:])
	g.owned = g.owned[:owned]
}

// Unlocked gives the lock back while f runs, for work that takes long and does not touch Python. The
// scope stays: its objects live on, though other Python code may change them meanwhile.
func (g *GIL) Unlocked(f func()) {
	g.thread.leave()
	defer func() { g.thread.enter() }()
	f()
}

// Commit tells whether the caller of Do still waits for the result, and holds it to that: after true,
// Do waits for this function's end even if its context ends first, so the function should end soon.
// After false the caller has gone with its context's error, and what the function has made so far is
// the function's to undo. Without Commit the function commits by returning.
func (g *GIL) Commit() bool {
	return g.outcome == nil || g.outcome.CompareAndSwap(jobRunning, jobCommitted) ||
		g.outcome.Load() == jobCommitted
}
