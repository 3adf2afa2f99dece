package hostplugin_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestExitStatus: the status is that of a shell, whoever has ended the program.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		bored := errors.New("bored")
		cancel(bored)
		_, _, err := s.ExitStatus(ctx)
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, context.Canceled) || !errors.Is(err, bored) || e.Program != "fake" {
			t.Errorf("the status of a program that runs: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if status, signal, err := s.ExitStatus(t.Context()); status != 0 || signal != 0 || err != nil {
			t.Errorf("after Close: %d, %v, %v", status, signal, err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		if err := syscall.Kill(info(t, s).PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if status, signal, err := s.ExitStatus(t.Context()); status != 128+9 || signal != syscall.SIGKILL || err != nil {
			t.Errorf("after SIGKILL: %d, %v, %v", status, signal, err)
		}
		<-s.Done()
		if err := s.Err(); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("Err = %v", err)
		}
	})
	t.Run("script ended", func(t *testing.T) {
		t.Parallel()
		s := start(t, "finish")
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Err() != nil {
			t.Errorf("a script that has ended well ends its session: %v", s.Err())
		}
		closeView(t, view(t, s, "samples")) // its arrays are there until Close
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // what is known does not hide that the context has ended
			if _, _, err := s.ExitStatus(ctx); !errors.Is(err, context.Canceled) || !errors.Is(s.Wait(ctx), context.Canceled) {
				t.Fatalf("ExitStatus = %v, Wait = %v", err, s.Wait(ctx))
			}
		}
		if err := s.Err(); !errors.Is(err, core.ErrClosed) {
			t.Errorf("Err after Close = %v", err)
		}
	})
	t.Run("script raised", func(t *testing.T) {
		t.Parallel()
		s := start(t, "raise")
		<-s.Done()
		for what, err := range map[string]error{"Err": s.Err(), "Wait": s.Wait(t.Context())} {
			if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Type != "ValueError" || e.Message != "not today" {
				t.Errorf("%s = %v", what, err)
			}
		}
		if !errors.Is(s.Err(), core.ErrUnavailable) {
			t.Errorf("a session whose script has raised is not gone: %v", s.Err())
		}
	})
}
