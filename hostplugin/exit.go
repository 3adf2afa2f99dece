package hostplugin

import (
	"context"
	"errors"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
)

// ExitStatus waits for the end of the program's process and gives its exit status as a shell does: 128
// and the number of the signal if one ended it. The signal is 0 if none did. A program whose script has
// ended well lives on until Close, for the sake of its arrays: see [Session.Wait].
func (s *Session) ExitStatus(ctx context.Context) (status int, signal syscall.Signal, err error) {
	if ctx.Err() != nil { // what is known at once does not hide it
		return 0, 0, s.over(ctx)
	}
	select {
	case <-s.conn.Process.Exited():
		return s.conn.Process.Status(), s.conn.Process.Signal(), nil
	case <-ctx.Done():
		return 0, 0, s.over(ctx)
	}
}

// ready is alive, and says that ctx has ended: an answer that is there at once does not hide that.
func (s *Session) ready(ctx context.Context, op, array string) error {
	if err := s.alive(op, array); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return nil
	}
	return &core.Error{Op: op, Program: s.launch.program.Name, Object: array, Kind: ctx.Err(), Err: context.Cause(ctx)}
}

// alive reports the session's end as the error of one call.
func (s *Session) alive(op, array string) error {
	select {
	case <-s.gone:
	default:
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := core.ErrUnavailable
	if errors.Is(s.cause, core.ErrPython) {
		kind = core.ErrPython
	}
	if s.leases.Closed() || errors.Is(s.err, core.ErrClosed) {
		kind = core.ErrClosed
	}
	return &core.Error{Op: op, Program: s.launch.program.Name, Object: array, Kind: kind, Err: s.cause}
}

// Wait waits until the program's script has ended: nil if it ended well, after which its arrays stay
// available. The error wraps core.ErrPython if the script raised, core.ErrUnavailable if it exited
// with another status or the program is gone, core.ErrClosed if Close came first. With a program that has no
// script, an ordinary executable, it waits for the end of the program, which is always an error.
func (s *Session) Wait(ctx context.Context) error {
	known := s.script.known
	for {
		if ctx.Err() != nil { // what is known at once does not hide it
			return s.over(ctx)
		}
		select {
		case <-known:
			if !errors.Is(s.script.err, core.ErrUnsupported) {
				return s.script.err
			}
			known = nil
		case <-s.gone:
			if known == nil {
				return s.Err()
			}
			<-known // it ends with the session
		case <-ctx.Done():
			return s.over(ctx)
		}
	}
}

// over is the error of a wait whose ctx has ended.
func (s *Session) over(ctx context.Context) error {
	return &core.Error{Op: "wait", Program: s.launch.program.Name, Kind: ctx.Err(), Err: context.Cause(ctx)}
}
