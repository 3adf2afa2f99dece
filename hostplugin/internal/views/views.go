// Package views remembers the views that a session has given, so that it can close them.
package views

import (
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
)

// Set holds the leases that stand and their views: weakly, so that a forgotten view is found by the
// garbage collector, and reported. All methods are safe for concurrent use.
type Set struct {
	release func(core.LeaseID)

	mu     sync.Mutex
	closed bool
	leases map[core.LeaseID]*Lease
	free   *Lease // to be used again
}

// Lease is a lease that stands.
type Lease struct {
	ID core.LeaseID
	// Release takes the lease out of the set and gives it back. It is called once, and is the last that
	// is done with the Lease.
	Release func() error

	view core.Ref
	next *Lease // in the list of free ones
}

// New makes an empty set, whose leases are given back by release.
func New(release func(core.LeaseID)) *Set {
	return &Set{release: release, leases: make(map[core.LeaseID]*Lease)}
}

// Add puts a lease into the set. One that is in it already belongs to another view, and stays with it:
// the error wraps core.ErrProtocol.
func (s *Set) Add(id core.LeaseID) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[id] != nil {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("lease %d was granted twice", id)}
	}
	l := s.free
	if l == nil {
		l = new(Lease)
		l.Release = func() error { s.end(l); return nil }
	} else {
		s.free = l.next
	}
	l.ID, l.next = id, nil
	s.leases[id] = l
	return l, nil
}

// end is Release of a lease.
func (s *Set) end(l *Lease) {
	id := l.ID
	s.mu.Lock()
	delete(s.leases, id)
	l.view = core.Ref{}
	l.next, s.free = s.free, l
	s.mu.Unlock()
	s.release(id)
}

// Lend says that v is the view of a lease, or reports false after Close.
func (s *Set) Lend(l *Lease, v *core.View) bool {
	view := v.Ref()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.view = view
	return !s.closed
}

// Close closes all views. After that no more are lent.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	views := make([]core.Ref, 0, len(s.leases))
	for _, l := range s.leases {
		views = append(views, l.view)
	}
	s.mu.Unlock()
	for _, v := range views {
		_ = v.Close() // fails only if the memory was not mapped
	}
}

// Closed reports whether Close was called.
func (s *Set) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
