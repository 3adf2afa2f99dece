// Package published holds what a program has given names to, and offers it to the host in the table that
// both share.
package published

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// Publication is one version of a name: an object, with a reference of its own, and what was known of it
// when it was published. It does not change, but for Version and At, which [Names.Put] sets.
type Publication struct {
	Object  py.Object
	Array   routes.Array // what the object said
	Mark    *export.Mark // the work that an array on a GPU waits for, if it was said; nil: nothing
	Watch   *py.Watch    // of the object; nil: it has no fingerprint
	Scalar  []byte       // the value of a Python number, which has no memory of its own; nil: it is none
	Version uint64       // grows with each publication of the name, also when the name was given back meanwhile
	At      time.Time

	// Offer is the program's own lease on the array, which the host may take a part in; its ID is 0 if the
	// host has to ask.
	Offer       contract.Lease
	Kept        *holds.Kept // what the offer holds in Python
	Separated   bool        // a fork takes the offer's memory away from the host
	Forks       uint64      // before the offer was made
	Description uint64      // of the offer: the same number for leases that differ in nothing but where they lie
	Text        []byte      // of the description
	Unseen      bool        // it was made before there was a host to offer it to, or by nothing but the object

	renews *Publication // what it takes over what that has; nil: it has its own
}

// Is reports whether both are the same version of one name. A version is described anew when a fork takes its offer away, and when there
// comes a host to offer it to.
func (p *Publication) Is(o *Publication) bool {
	return p == o || p != nil && o != nil && p.Version == o.Version && p.Object == o.Object
}

// Again begins a new version of what was published, for which everything is as it was. It takes over what p has, in
// [Names.Put], if p is still that of its name then: see [Names.Stale].
func (p *Publication) Again() *Publication {
	next := *p
	next.renews = p
	return &next
}

// Renews reports whether p has nothing of its own yet.
func (p *Publication) Renews() bool { return p.renews != nil }

// Stale gives a name whose publication is to renew one that its name does not have any more. It is called with the
// GIL held, and so is Put then, without code of Python's in between.
func (n *Names) Stale(next map[string]*Publication) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, p := range next {
		if p == nil || p.renews == nil {
			continue
		}
		if e := n.entries[name]; e == nil || e.Publication != p.renews {
			return name, true
		}
	}
	return "", false
}

// Names holds the publications. Its lock is never held while Python code can run, since that code may
// publish. The zero value is ready. Put is called with the GIL held.
type Names struct {
	changes atomic.Uint64 // of which names are taken
	forks   atomic.Uint64 // when Separate was last called

	mu      sync.Mutex
	writer  *offers.Writer // nil: no host looks
	entries map[string]*entry
	highest uint64                      // version that a name which was given back ever had
	retired []*Publication              // offers that the host holds, though they stand in the table no more
	offered map[contract.LeaseID]string // leases of the program's own, and the names that they were made for
}

// entry is a name that is taken.
type entry struct {
	*Publication
	index int // in the table; -1: it does not stand there
}

// Changes counts the changes of which names are taken. What is asked for after it is at least as new.
func (n *Names) Changes() uint64 { return n.changes.Load() }

// Use begins to tell the host by a table, in which stands then what was published before, or ends it if w is nil.
func (n *Names) Use(w *offers.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writer = w
	if w != nil {
		w.Begin()
		defer w.End()
	}
	for name, e := range n.entries {
		if e.index = -1; w != nil {
			n.tell(w, name, e)
		}
	}
}

// Forks counts the forks of this process by which shared memory was taken from the host; 0 if nobody counts.
func (n *Names) Forks() uint64 {
	n.mu.Lock() // the table's memory stays until Use has returned
	defer n.mu.Unlock()
	if w := n.writer; w != nil {
		return w.Forked()
	}
	return 0
}

// Get gives what is published under a name, or nil, and holds its object in g's scope. The caller closes its
// mark.
func (n *Names) Get(g *py.GIL, name string) *Publication {
	n.mu.Lock()
	e := n.entries[name]
	if e == nil {
		n.mu.Unlock()
		return nil
	}
	p := e.Publication
	g.Share(p.Object)
	if p.Mark != nil {
		p.Mark.Hold()
	}
	n.mu.Unlock()
	return p
}

// Last gives what is published under a name, or nil. With the GIL held what it gives stays until code of Python's runs;
// without, it is only to be compared.
func (n *Names) Last(name string) *Publication {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.entries[name]; e != nil {
		return e.Publication
	}
	return nil
}

// Rouse wakes the hosts that wait for a version of a name, which is about to come.
func (n *Names) Rouse(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.entries[name]; e != nil && e.index >= 0 && n.writer != nil {
		n.writer.Rouse(e.index)
	}
}

// Room reports whether there is room in the table for publications under names.
func (n *Names) Room(next map[string]*Publication) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.writer == nil {
		return true
	}
	room := n.writer.Room()
	for name, p := range next {
		if e := n.entries[name]; p != nil && (e == nil || e.index < 0) {
			room--
		}
	}
	return room >= 0
}

// Show makes p what is told of a version that the host has not been told of rightly, if its name still has that version. What was there
// before comes back, for [Names.Ended], or else p.
func (n *Names) Show(name string, version, p *Publication) (over *Publication) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entries[name]
	if e == nil || e.Publication != version {
		return p
	}
	p.Version, p.At = version.Version, version.At
	e.Publication = p
	if p.Offer.ID != 0 {
		n.offered[p.Offer.ID] = name
	}
	if w := n.writer; w != nil {
		w.Begin()
		defer w.End()
		n.tell(w, name, e)
	}
	return version
}

// Put makes all publications at once the versions of their names that follow, or gives a name back whose
// publication is nil. The publications that were there before come back, for [Names.Ended].
func (n *Names) Put(next map[string]*Publication) (before []*Publication) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.entries == nil {
		n.entries, n.offered = make(map[string]*entry), make(map[contract.LeaseID]string)
	}
	w := n.writer
	if w != nil {
		w.Begin()
		defer w.End()
	}
	for name, p := range next {
		e := n.entries[name]
		switch {
		case p == nil && e == nil:
			continue
		case p == nil:
			delete(n.entries, name)
			n.highest = max(n.highest, e.Version)
			n.changes.Add(1)
			if w != nil && e.index >= 0 {
				w.Remove(e.index)
			}
			before = append(before, e.Publication)
			continue
		case e == nil:
			e = &entry{Publication: &Publication{Version: n.highest}, index: -1} // one number for all names needs no memory
			n.entries[name] = e
			n.changes.Add(1)
		case p.renews == nil:
			before = append(before, e.Publication)
		}
		p.Version, p.At, p.renews = e.Version+1, now, nil
		e.Publication = p
		if p.Offer.ID != 0 {
			n.offered[p.Offer.ID] = name
		}
		if w != nil {
			n.tell(w, name, e)
		}
	}
	return before
}

// tell writes an entry into the table.
func (n *Names) tell(w *offers.Writer, name string, e *entry) {
	if e.index < 0 {
		var ok bool
		if e.index, ok = w.Add(name); !ok {
			e.index = -1
			return
		}
	}
	to := offers.Entry{Version: e.Version, Published: e.At.UnixNano()}
	if segment, ok := e.Offer.Handle.(contract.Segment); ok {
		to.Ticket, to.Description = uint64(e.Offer.ID), e.Description
		to.Segment, to.Size, to.Offset = uint64(segment.ID), segment.Size, int64(e.Offer.Layout.Offset())
		if e.Separated {
			to.Forks = e.Forks
		}
	}
	w.Write(e.index, &to, e.Text)
}

// Separate withdraws the offers whose memory a fork has taken away from the host, and gives them, for Ended.
func (n *Names) Separate() (before []*Publication) {
	now := n.Forks()
	if n.forks.Swap(now) == now {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.writer
	if w == nil {
		return nil
	}
	w.Begin()
	defer w.End()
	for name, e := range n.entries {
		if !e.Separated || e.Forks == now {
			continue
		}
		before = append(before, &Publication{Offer: e.Offer, Kept: e.Kept})
		next := *e.Publication
		next.Offer, next.Kept, next.Separated = contract.Lease{}, nil, false
		e.Publication = &next
		n.tell(w, name, e)
	}
	return before
}

// Ended takes publications that their names do not have any more, and gives what of them is over: the offers that
// the host does not hold, and all objects, since what a host looks at must not change how many references the
// program's objects have. The other offers are kept until the host lets go. With no publications it only looks for
// what the host has let go.
func (n *Names) Ended(before ...*Publication) (over []*Publication) {
	n.mu.Lock()
	defer n.mu.Unlock()
	end := func(p *Publication) bool {
		if p.Offer.ID != 0 && n.writer != nil && n.writer.Held(uint64(p.Offer.ID)) {
			return false
		}
		delete(n.offered, p.Offer.ID)
		over = append(over, p)
		return true
	}
	n.retired = slices.DeleteFunc(n.retired, end)
	for _, p := range before {
		if !end(p) {
			over = append(over, &Publication{Object: p.Object, Watch: p.Watch, Mark: p.Mark})
			n.retired = append(n.retired, &Publication{Offer: p.Offer, Kept: p.Kept})
		}
	}
	return over
}

// Offered reports whether a lease is one of the program's own, which no host can end.
func (n *Names) Offered(id contract.LeaseID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.offered[id]
	return ok
}

// OfOffer gives the publication that an offer is of, and its name; nil if its name has another one by now. It is
// called with the GIL held, which keeps what it gives.
func (n *Names) OfOffer(id contract.LeaseID) (name string, p *Publication) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name = n.offered[id]
	if e := n.entries[name]; e != nil && e.Offer.ID == id {
		return name, e.Publication
	}
	return name, nil
}

// Leases corrects the number of standing leases: the host's holds count, and the program's own do not.
func (n *Names) Leases(standing int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.writer; w != nil {
		standing += w.Holds()
	}
	return max(standing-len(n.offered), 0)
}

// CloseMarks is for the end, when nothing is leased any more.
func (n *Names) CloseMarks() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.entries {
		if e.Mark != nil {
			e.Mark.Close()
			e.Publication = &Publication{Object: e.Object, Version: e.Version}
		}
	}
}

// Names gives the names that are taken, in order.
func (n *Names) Names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.entries))
}
