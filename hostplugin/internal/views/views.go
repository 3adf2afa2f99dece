// Package views remembers the views that a session has given, so that it can close them.
package views

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// Set holds the leases that stand and their views: weakly, so that a forgotten view is found by the
// garbage collector, and reported. All methods are safe for concurrent use. What was taken out is used
// again, so that they make no garbage.
type Set struct {
	release func(core.LeaseID)
	closed  atomic.Bool

	mu    sync.Mutex
	count int      // of leases
	table []*Lease // lists by hash; as many as a power of two, and at least as many as leases
	free  *Lease   // list
}

// Lease is a lease that stands.
type Lease struct {
	ID core.LeaseID
	// Release takes the lease out of the set and gives it back. It is called once, and is the last that
	// is done with the Lease.
	Release func() error

	view core.Ref
	next *Lease // in its list
}

// New makes an empty set, whose leases are given back by release.
func New(release func(core.LeaseID)) *Set {
	return &Set{release: release, table: make([]*Lease, 8)}
}

// list is where a lease of that ID is, if it is in the set. IDs are counted, some of them in their upper
// bits; the product is spread over all.
func (s *Set) list(id core.LeaseID) **Lease {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return &s.table[(uint64(id)*golden>>32)&uint64(len(s.table)-1)]
}

// Add puts a lease into the set. One that is in it already belongs to another view, and stays with it:
// the error wraps core.ErrProtocol.
func (s *Set) Add(id core.LeaseID) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := *s.list(id); l != nil; l = l.next {
		if l.ID == id {
			return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("lease %d was granted twice", id)}
		}
	}
	if s.count == len(s.table) {
		s.grow()
	}
	l := s.free
	if l == nil {
		l = new(Lease)
		l.Release = func() error { s.end(l); return nil }
	} else {
		s.free = l.next
	}
	l.ID = id
	s.put(l)
	s.count++
	return l, nil
}

func (s *Set) put(l *Lease) {
	list := s.list(l.ID)
	l.next, *list = *list, l
}

// grow makes room. The caller holds the lock.
func (s *Set) grow() {
	old := s.table
	s.table = make([]*Lease, 2*len(old))
	for _, l := range old {
		for l != nil {
			next := l.next
			s.put(l)
			l = next
		}
	}
}

// end is Release of a lease.
func (s *Set) end(l *Lease) {
	id := l.ID
	s.mu.Lock()
	at := s.list(id)
	for *at != l {
		at = &(*at).next
	}
	*at = l.next
	s.count--
	l.view = core.Ref{}
	l.next, s.free = s.free, l
	s.mu.Unlock()
	s.release(id)
}

// Close closes all views. After that no more are lent.
func (s *Set) Close() {
	s.closed.Store(true) // before it looks at the views: who opens one looks at it afterwards
	s.mu.Lock()
	views := make([]core.Ref, 0, s.count)
	for _, l := range s.table {
		for ; l != nil; l = l.next {
			views = append(views, l.view)
		}
	}
	s.mu.Unlock()
	for _, v := range views {
		_ = v.Close() // fails only if the memory was not mapped
	}
}

// Closed reports whether Close was called.
func (s *Set) Closed() bool { return s.closed.Load() }
