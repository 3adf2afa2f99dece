// Package published holds what a program has given names to.
package published

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/cuda/export"
)

// Target is an object that a name leads to.
type Target struct {
	Object py.Object
	Mark   *export.Mark // the work that an array on a GPU waits for, if it was said when it was published
	Offer  *Offer       // what stands on the board for it, of which the program looks after the end; nil: nothing
}

// Close gives the mark up.
func (t Target) Close() {
	if t.Mark != nil {
		t.Mark.Close()
	}
}

// Drop gives up what a name that was published held.
func (t Target) Drop(g *py.GIL) {
	t.Close()
	if t.Object != 0 {
		g.Drop(t.Object)
	}
}

// Names holds the objects that the program has given a name. Its lock is never held while Python
// code can run, since that code may publish. The zero value is ready.
type Names struct {
	changes atomic.Uint64 // of which names are taken

	mu      sync.Mutex
	objects map[string]Target // references of its own
}

// Changes counts the changes of which names are taken. What is asked for after it is at least as new.
func (n *Names) Changes() uint64 { return n.changes.Load() }

// Get gives an object, which the scope holds from then on. The caller closes it.
func (n *Names) Get(g *py.GIL, name string) (t Target, ok bool, err error) {
	n.mu.Lock()
	if t, ok = n.objects[name]; ok {
		g.Keep(t.Object)
		if t.Mark != nil {
			t.Mark.Hold()
		}
	}
	n.mu.Unlock()
	if !ok {
		return Target{}, false, nil
	}
	defer g.Drop(t.Object)
	if _, err = g.NewTuple(t.Object); err != nil { // the scope's hold on the object
		t.Close()
		return Target{}, false, err
	}
	return t, true, nil
}

// Has reports whether a name is taken.
func (n *Names) Has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.objects[name]
	return ok
}

// Put takes the name for t, or gives it back if t is empty, and shows its offer. What had it comes back,
// with its reference; its offer is still to be withdrawn, and so is t's if the board refused it.
func (n *Names) Put(name string, t Target) (before Target, refused *Offer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before = n.objects[name]
	if t.Offer != nil && !t.Offer.note.Show() {
		refused, t.Offer = t.Offer, nil
	}
	switch {
	case t.Object == 0:
		delete(n.objects, name)
	case n.objects == nil:
		n.objects = map[string]Target{name: t}
	default:
		n.objects[name] = t
	}
	if (before.Object == 0) != (t.Object == 0) {
		n.changes.Add(1)
	}
	return before, refused
}

// CloseMarks is for the end, when nothing is leased any more.
func (n *Names) CloseMarks() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, t := range n.objects {
		t.Close()
		n.objects[name] = Target{Object: t.Object}
	}
}

// Names gives the names that are taken, in order.
func (n *Names) Names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.objects))
}
