package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// Exited says that the script has ended by itself, with this status and the message that it gave
// instead of one, if any. After status 0 its arrays stay available; after any other nothing can be
// had from the program any more.
func (p *Program) Exited(status int, message string) {
	if status == 0 {
		p.state.end(nil)
		return
	}
	err := fmt.Errorf("the program exited with status %d", status)
	if message != "" {
		err = fmt.Errorf("%w: %s", err, message)
	}
	p.state.end(&core.Error{Op: "run", Kind: core.ErrUnavailable, Err: err})
}

// Failed says that the script has raised. Nothing can be had from the program any more.
func (p *Program) Failed(err *core.PythonError) {
	p.state.end(&core.Error{Op: "run", Kind: core.ErrPython, Err: err})
}

// Wait implements [contract.Waiter].
func (p *Program) Wait(ctx context.Context) error { return p.state.wait(ctx) }

// progress is how far the program's script has come, and who waits for it.
type progress struct {
	gone atomic.Bool // err is not nil

	mu      sync.Mutex
	ended   bool
	err     error         // why nothing can be had from it any more; nil if it ended well
	done    chan struct{} // closed at the end; made when first asked for
	changed chan struct{} // closed at the next change of what names there are
}

// watch gives the state, and a channel that is closed when it changes or names are published. So a
// name that is looked up after watch, and is not there, cannot come unnoticed. The error is a part of
// the state: watch does not fail.
func (s *progress) watch() (ended bool, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.ended, s.changed, s.err
}

// failed gives why nothing can be had from the program any more, or nil.
func (s *progress) failed() error {
	if !s.gone.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// touch wakes up those who wait for a name.
func (s *progress) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

func (s *progress) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// end is called once; the first word on how the script ended is the last.
func (s *progress) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	s.gone.Store(err != nil)
	s.wake()
	close(s.doneChannel())
}

func (s *progress) doneChannel() chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

// wait returns when the script has ended.
func (s *progress) wait(ctx context.Context) error {
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
