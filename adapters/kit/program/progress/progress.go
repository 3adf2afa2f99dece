// Package progress tells how far a program's script has come.
package progress

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// State is how far the program's script has come, and who waits for it.
type State struct {
	failed atomic.Bool // err is not nil

	mu      sync.Mutex
	ended   bool
	err     error         // why nothing can be had from it any more; nil if it ended well
	done    chan struct{} // closed at the end; made when first asked for
	changed chan struct{} // closed at the next change of what names there are
}

// Watch gives the state, and a channel that is closed when it changes or names are published. So a
// name that is looked up after Watch, and is not there, cannot come unnoticed. The error is a part of
// the state: Watch does not fail.
func (s *State) Watch() (ended bool, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.ended, s.changed, s.err
}

// Failed gives why nothing can be had from the program any more, or nil.
func (s *State) Failed() error {
	if !s.failed.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Touch wakes up those who wait for a name.
func (s *State) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

func (s *State) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// End is called once; the first word on how the script ended is the last.
func (s *State) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	s.failed.Store(err != nil)
	s.wake()
	close(s.doneChannel())
}

func (s *State) doneChannel() chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

// Wait returns when the script has ended.
func (s *State) Wait(ctx context.Context) error {
	s.mu.Lock()
	done := s.doneChannel()
	s.mu.Unlock()
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	case <-ctx.Done():
		return &core.Error{Op: "wait", Kind: ctx.Err(), Err: errors.New("the program still runs")}
	}
}
