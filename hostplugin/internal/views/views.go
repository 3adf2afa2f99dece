// Package views remembers the views that a session has given, so that it can close them.
package views

import (
	"fmt"
	"sync"
	"weak"

	"github.com/ndbridge/ndbridge/core"
)

// Set holds views by lease, weakly, so that a forgotten view is found by the garbage collector, and
// reported. The zero value is empty. All methods are safe for concurrent use.
type Set struct {
	mu     sync.Mutex
	closed bool
	views  map[core.LeaseID]weak.Pointer[core.View]
}

// Reserve makes room for a view. A lease that is in the set already belongs to another view, and stays
// with it: the error wraps core.ErrProtocol.
func (s *Set) Reserve(id core.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.views[id]; twice {
		return &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("lease %d was granted twice", id)}
	}
	if s.views == nil {
		s.views = make(map[core.LeaseID]weak.Pointer[core.View])
	}
	s.views[id] = weak.Pointer[core.View]{}
	return nil
}

// Register puts a view where there is room for it, or reports false after Close.
func (s *Set) Register(id core.LeaseID, v *core.View) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.views[id] = weak.Make(v)
	return true
}

// Remove takes a lease out.
func (s *Set) Remove(id core.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.views, id)
}

// Close closes all views, and lets no more be registered.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	views := make([]*core.View, 0, len(s.views))
	for _, p := range s.views {
		if v := p.Value(); v != nil {
			views = append(views, v)
		}
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
