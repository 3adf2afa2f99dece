// Package holds gives back what leases hold in Python.
package holds

import (
	"context"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// Hold is one thing that is given back with a lease: an object or a DLPack tensor, which keep memory as it
// is, or a watch.
type Hold struct {
	Object            py.Object
	OnMain            bool // only Python's main thread may end the object
	Deleter, Argument uintptr
	Watch             *py.Watch
}

// Drop gives the thing back. Python may run any code then.
func (h Hold) Drop(g *py.GIL) {
	if h.Watch != nil {
		h.Watch.Drop(g) // before its object may be gone
	}
	switch {
	case h.Object == 0:
	case h.OnMain:
		g.DropOnMain(h.Object)
	default:
		g.Drop(h.Object)
	}
	if h.Deleter != 0 {
		g.CallDeleter(h.Deleter, h.Argument)
	}
}

// Kept is what one lease holds. Whoever takes it first gives it back. All methods are safe for concurrent
// use.
type Kept struct {
	mu     sync.Mutex
	things []Hold
}

// Keep makes a Kept of things.
func Keep(things []Hold) *Kept { return &Kept{things: things} }

// Take gives the things, once. A nil Kept has none.
func (k *Kept) Take() []Hold {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	things := k.things
	k.things = nil
	return things
}

// Keeper gives Python's things back when leases end. That needs the GIL, for which Release must not
// wait, and each turn of which costs the program time: so what has come together meanwhile goes back
// in one turn.
type Keeper struct {
	interp *py.Interp

	mu      sync.Mutex
	pending []Hold
	gathers int // calls of Gather under way
	closed  bool
	stop    context.CancelFunc // of the goroutine that runs while something is pending
	running sync.WaitGroup
}

// New makes a keeper. The caller must Close it.
func New(interp *py.Interp) *Keeper { return &Keeper{interp: interp} }

// Add gives things back soon. It does not wait.
func (k *Keeper) Add(things []Hold) {
	if len(things) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return // the program is ending, and everything with it
	}
	k.pending = append(k.pending, things...)
	if k.gathers == 0 {
		k.begin()
	}
}

// begin has a goroutine give back what is pending. The lock is held.
func (k *Keeper) begin() {
	if len(k.pending) == 0 || k.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.running.Go(func() { k.run(ctx) })
}

// Gather calls f. What is added meanwhile is the caller's to give back, by Drop, or by Soon if it is not to have the GIL soon: one who
// has keeps no goroutine from it, and so nobody who waits for what the goroutine would do.
func (k *Keeper) Gather(f func()) {
	k.mu.Lock()
	k.gathers++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.gathers--
	}()
	f()
}

// Soon has given back soon what is pending. It does not wait.
func (k *Keeper) Soon() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin()
}

func (k *Keeper) run(ctx context.Context) {
	for k.goesOn() {
		err := k.interp.Do(ctx, func(g *py.GIL) error {
			k.Drop(g)
			return nil
		})
		if err != nil { // the interpreter is ending: its things are not ours to touch any more
			k.close()
		}
	}
}

// Drop gives back what was added until now.
func (k *Keeper) Drop(g *py.GIL) {
	k.mu.Lock()
	things := k.pending
	k.pending = nil
	k.mu.Unlock()
	for _, t := range things {
		t.Drop(g)
	}
}

// goesOn reports whether something is pending. Otherwise the goroutine ends.
func (k *Keeper) goesOn() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pending) == 0 && k.stop != nil {
		k.stop()
		k.stop = nil
	}
	return len(k.pending) > 0
}

// Flush waits until everything is given back that was added.
func (k *Keeper) Flush() { k.running.Wait() }

// Close forgets what is pending, and waits for what is under way.
func (k *Keeper) Close() {
	k.close()
	k.running.Wait()
}

func (k *Keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.pending = nil
	if k.stop != nil {
		k.stop()
	}
}
