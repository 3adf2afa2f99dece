package hostplugin_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

func TestClosingParentsClosesChildren(t *testing.T) {
	t.Parallel()
	host := newHost(t, fake("serve"))
	s, err := host.Start(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	v := view(t, s, "samples")
	crop, err := v.Sub(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	pid := info(t, s).PID
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := host.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := core.Slice[float32](v); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view after its host's Close: %v", err)
	}
	if x, err := core.At[float32](crop, 0, 0); err != nil || x != 0 {
		t.Errorf("a derived view after its host's Close = %v, %v", x, err)
	}
	closeView(t, crop)
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d still runs", pid)
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Close")
	}
	_, viewErr := s.View(t.Context(), "samples")
	_, infoErr := s.Info(t.Context())
	_, startErr := host.Start(t.Context(), "fake")
	var listErr error
	for _, err := range s.Arrays(t.Context()) {
		listErr = err
	}
	_, leaseErr := s.Producer().Lease(t.Context(), "samples", contract.Request{})
	for what, err := range map[string]error{
		"Err": s.Err(), "View": viewErr, "Info": infoErr, "Arrays": listErr, "Start": startErr, "Lease": leaseErr,
		"Wait": s.Wait(t.Context()),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after Close = %v", what, err)
		}
	}
}

// TestDeath: however a program dies, calls end at once with the reason, and views stay readable.
func TestDeath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		die  string // a name to ask for, or "" to be killed from outside
		want string
	}{
		{"killed", nil, "", "the program was killed by signal 9 (SIGKILL)"},
		{"kills itself", nil, "kill:", "the program was killed by signal 9 (SIGKILL)"},
		{"exits", nil, "exit:3", `the program exited with status 3; its last words: "I am leaving"`},
		{"leaves a child with its pipes", []string{"detach"}, "kill:", "the program was killed by signal 9 (SIGKILL)"},
		{"closes descriptor 3", []string{"linger"}, "side:", "the program goes on, but has closed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bootstraptest.Buffer
			host := newHostWith(t, hostplugin.Config{
				Programs: []hostplugin.Program{fake("serve", test.args...)},
				Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			})
			s, err := host.Start(t.Context(), "fake")
			if err != nil {
				t.Fatal(err)
			}
			defer killDetached(t, &log)
			v := view(t, s, "samples")
			defer closeView(t, v)
			pid := info(t, s).PID

			waiting := make(chan error, 1)
			go func() {
				_, err := s.View(t.Context(), "nothing yet")
				waiting <- err
			}()
			began := time.Now()
			if test.die == "" {
				err = syscall.Kill(pid, syscall.SIGKILL)
			} else if _, err = s.View(t.Context(), test.die); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("View of %s = %v", test.die, err)
			} else {
				err = nil
			}
			if err != nil {
				t.Fatal(err)
			}
			<-s.Done()
			if d := time.Since(began); d > 5*time.Second { // the promise of 100 ms is tested on a quiet machine
				t.Errorf("Done after %v", d)
			}
			for what, err := range map[string]error{"Err": s.Err(), "View": <-waiting} {
				if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s = %v, want %q", what, err, test.want)
				}
			}
			if x, err := core.At[float32](v, 0, 0); err != nil || x != -3 {
				t.Errorf("a standing view has %v, %v", x, err)
			}
			if _, err := s.View(t.Context(), "samples"); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("a new view = %v", err)
			}
			if err := s.Wait(t.Context()); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("Wait = %v", err)
			}
		})
	}
}

// killDetached ends the child that a fake with "detach" has left.
func killDetached(t *testing.T, log *bootstraptest.Buffer) {
	t.Helper()
	_, rest, ok := strings.Cut(log.String(), "detached ")
	if !ok {
		return
	}
	pid, err := strconv.Atoi(rest[:strings.IndexAny(rest, "\"\n")])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the detached child %d: %v", pid, err)
	}
}

func TestScriptEnds(t *testing.T) {
	t.Parallel()
	s := start(t, "finish")
	if err := s.Wait(t.Context()); err != nil {
		t.Errorf("Wait = %v", err)
	}
	closeView(t, view(t, s, "samples")) // its arrays stay
	if s.Err() != nil {
		t.Errorf("Err = %v", s.Err())
	}

	s = start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait for a script that goes on = %v", err)
	}
}

func TestScriptRaises(t *testing.T) {
	t.Parallel()
	s := start(t, "raise")
	<-s.Done()
	for what, err := range map[string]error{"Err": s.Err(), "Wait": s.Wait(t.Context())} {
		py, ok := errors.AsType[*core.PythonError](err)
		if !ok || py.Error() != "ValueError: not today" || py.Traceback != "Traceback..." {
			t.Errorf("%s = %v", what, err)
		}
	}
	_, err := s.View(t.Context(), "samples") // as a view before the end, and the program is gone
	if !errors.Is(err, core.ErrUnavailable) || core.Category(err) != "python error" {
		t.Errorf("View = %v", err)
	}
	if !errors.Is(s.Err(), core.ErrUnavailable) || !errors.Is(s.Wait(t.Context()), core.ErrPython) {
		t.Errorf("categories of %v and %v", s.Err(), s.Wait(t.Context()))
	}
}

// TestCloseEndsAnyProgram: also one that is stopped, within two seconds and a bit.
func TestCloseEndsAnyProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, ask string
		args      []string
	}{
		{"stopped", "stop:", nil},
		{"does not leave", "", []string{"linger"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.args...)
			pid := info(t, s).PID
			if test.ask != "" {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := s.View(ctx, test.ask); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("View = %v", err)
				}
			}
			began := time.Now()
			err := s.Close()
			if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnavailable) || e.Program != "fake" || e.Remedy == "" {
				t.Errorf("Close of a program that had to be killed = %v", err)
			}
			if again := s.Close(); again == nil || again.Error() != err.Error() {
				t.Errorf("Close again = %v", again)
			}
			if d := time.Since(began); d < time.Second || d > 4*time.Second {
				t.Errorf("Close took %v", d)
			}
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("process %d still runs", pid)
			}
		})
	}
}

// TestCloseBesideViews closes a session while others take and close views.
func TestCloseBesideViews(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := start(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					v, err := s.View(t.Context(), "samples")
					if err != nil {
						if !errors.Is(err, core.ErrClosed) {
							t.Errorf("View = %v", err)
						}
						return
					}
					if err := v.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// TestNothingStays: descriptors, mappings and files, after sessions of every kind.
func TestNothingStays(t *testing.T) { // not parallel: it counts the process's descriptors
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	session := func(args ...string) {
		s := start(t, args...)
		if left, err := filepath.Glob(tmp + "/*"); err != nil || len(left) > 0 {
			t.Errorf("while the session runs there is %v, %v", left, err)
		}
		if len(args) > 0 {
			<-s.Done()
		} else {
			defer closeView(t, view(t, s, "big"))
			closeView(t, view(t, s, "picture", hostplugin.Writable()))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	session() // what Go itself opens, once
	fds, maps := len(openFDs(t)), mappings(t)
	session()
	session("raise")
	for range 3 {
		session()
	}
	eventually(t, "descriptors are closed", func() bool { return len(openFDs(t)) <= fds })
	if n := mappings(t); n > maps {
		t.Errorf("%d shared mappings, %d before", n, maps)
	}
	if left, err := filepath.Glob(tmp + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// mappings counts the memfds that this process has mapped.
func mappings(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "/memfd:")
}
