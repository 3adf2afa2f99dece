package hostplugin_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// bothWays runs a test on sessions whose views are asked for through shared memory, with the usual spin
// and with none, and by gRPC alone.
func bothWays(t *testing.T, test func(t *testing.T, s *hostplugin.Session)) {
	t.Helper()
	for name, set := range map[string]func(p *hostplugin.Program){
		"usual":  func(*hostplugin.Program) {},
		"asleep": func(p *hostplugin.Program) { p.Handoff = hostplugin.HandoffOptions{Spin: -1, Slots: 1} },
		"grpc":   func(p *hostplugin.Program) { p.Handoff.Off = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, startWith(t, set))
		})
	}
}

func TestViewsHaveTheProgramsValues(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		for _, a := range coretest.Arrays() {
			t.Run(a.Name, func(t *testing.T) {
				t.Parallel()
				v := view(t, s, a.Name)
				defer closeView(t, v)
				if v.DType() != a.DType || v.Tag() != a.Tag || !slices.Equal(v.Shape(), a.Shape) {
					t.Errorf("view is %v %q %v, want %v %q %v", v.DType(), v.Tag(), v.Shape(), a.DType, a.Tag, a.Shape)
				}
				got := make([]byte, len(a.Data))
				if n, err := core.CopyBytes(t.Context(), got, v); err != nil || n != len(got) || !slices.Equal(got, a.Data) {
					t.Errorf("CopyBytes = %d, %v: not the values that the program has", n, err)
				}
				if v.Writable() || v.Copied() || v.Name() != a.Name || v.Framework() != "fake" {
					t.Errorf("writable %v, copied %v, %s of %s", v.Writable(), v.Copied(), v.Name(), v.Framework())
				}
			})
		}
	})
}

func TestWritableViewsShareMemory(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		r, w := view(t, s, "samples"), view(t, s, "samples", hostplugin.Writable())
		defer closeView(t, r)
		defer closeView(t, w)
		if err := core.Set(w, float32(42), 1, 2); err != nil {
			t.Fatal(err)
		}
		if x, err := core.At[float32](r, 1, 2); err != nil || x != 42 {
			t.Errorf("the other view has %v, %v", x, err)
		}
		if r.Addr() == w.Addr() {
			t.Error("views for reading and for writing share a mapping")
		}
		if err := core.Set(r, float32(1), 0, 0); !errors.Is(err, core.ErrReadOnly) {
			t.Errorf("Set on a read-only view = %v", err)
		}
	})
}

// TestMappingsAreShared: one descriptor for any number of views, also one after another.
func TestMappingsAreShared(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		var views []*core.View
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 16 {
			wg.Go(func() {
				v, err := s.View(t.Context(), "picture")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				views = append(views, v)
			})
		}
		wg.Wait()
		for _, v := range views {
			if v.Addr() != views[0].Addr() {
				t.Errorf("views at %#x and %#x", v.Addr(), views[0].Addr())
			}
		}
		for _, v := range views {
			closeView(t, v)
		}
		for range 100 {
			closeView(t, view(t, s, "picture"))
		}
		i := info(t, s)
		if !strings.Contains(i.Interpreter, " 1 descriptors") {
			t.Errorf("116 views took more than one descriptor: %s", i.Interpreter)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestManyGoroutines: views of all arrays, taken and closed by many at a time, are right, and give all
// leases back.
func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		arrays := coretest.Arrays()
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for j := range 2 * len(arrays) {
					a := arrays[(i+j)%len(arrays)]
					v, err := s.View(t.Context(), a.Name)
					if err != nil {
						t.Error(err)
						return
					}
					got := make([]byte, len(a.Data))
					if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !slices.Equal(got, a.Data) {
						t.Errorf("%s: %v, or other values than the program has", a.Name, err)
					}
					closeView(t, v)
					closeView(t, v)
					if _, err := core.CopyBytes(t.Context(), got, v); !errors.Is(err, core.ErrClosed) {
						t.Errorf("%s: a closed view: %v", a.Name, err)
					}
				}
			})
		}
		wg.Wait()
		// Leases are given back on their own time.
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestContextsThatHaveEnded: each call says so, with the cause, and leaves the session as it was.
func TestContextsThatHaveEnded(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		reason := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		_, viewErr := s.View(ctx, "samples")
		_, infoErr := s.Info(ctx)
		_, _, statusErr := s.ExitStatus(ctx)
		var listErr error
		for _, err := range s.Arrays(ctx) {
			listErr = err
		}
		for what, err := range map[string]error{
			"View": viewErr, "Info": infoErr, "Arrays": listErr, "Wait": s.Wait(ctx), "ExitStatus": statusErr,
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v", what, err)
			}
		}
		v, src := view(t, s, "samples"), source(t, s, "samples")
		for range 200 { // an answer that is there at once does not hide it
			if _, err := src.View(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
				t.Fatalf("Source.View = %v", err)
			}
			if again, changed, err := src.Refresh(ctx, v); again != v || changed || !errors.Is(err, reason) {
				t.Fatalf("Refresh = %p, %v, %v; want %p, false and %v", again, changed, err, v, reason)
			}
		}
		closeView(t, v)
	})
}

func TestRequestOptionsReachTheProgram(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		for want, opts := range map[string][]hostplugin.ViewOption{
			"policy , writable false, no wait false":         nil,
			"policy never, writable true, no wait false":     {hostplugin.NoCopy(), hostplugin.Writable()},
			"policy if-needed, writable false, no wait true": {hostplugin.AllowCopy(), hostplugin.NoWait()},
		} {
			_, err := s.View(t.Context(), "policy:x", opts...)
			if !errors.Is(err, core.ErrNotShared) || !strings.Contains(err.Error(), want) {
				t.Errorf("View = %v, want %q", err, want)
			}
			if e, ok := errors.AsType[*core.Error](err); !ok || e.Op != "view" || e.Program != "fake" ||
				e.Object != "policy:x" || e.Reason != contract.ReasonHeapOff || !e.Remote {
				t.Errorf("error lost something: %#v", e)
			}
		}
	})
}

func TestMissingNames(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		if _, err := s.View(t.Context(), "nothing", hostplugin.NoWait()); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("View without waiting = %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := s.View(ctx, "nothing"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("View with a deadline = %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := s.View(ctx, "deaf:"); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled View of a program that does not listen = %v", err)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestLongWaits: who waits for a name that does not come learns what else there is, from the log while
// he waits, and from the error.
func TestLongWaits(t *testing.T) {
	t.Parallel()
	for _, through := range []bool{true, false} {
		var log bootstraptest.Buffer
		p := fake("serve")
		p.Handoff.Off = !through
		host := newHostWith(t, hostplugin.Config{Programs: []hostplugin.Program{p}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s, err := host.Start(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			eventually(t, "the log says it", func() bool { return strings.Contains(log.String(), "still waiting") })
		}()
		_, err = s.View(ctx, "nothing")
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, context.Canceled) || e.Remedy != "look again" {
			t.Errorf("View = %v", err)
		}
		const want = `level=WARN msg="still waiting for an array" program=fake array=nothing remedy="look again"`
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says %s\nwant %s", log.String(), want)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	}
}

// TestLies: what a hostile plugin says about its memory is an error, and nothing stays of it.
func TestLies(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		fds := openFDs(t)
		for name, write := range map[string]bool{
			"lie:device": false, "lie:directory": false, "lie:pipe": false, "lie:unsealed": false, "lie:short": false,
			"lie:read-only": true, "lie:nothing": false,
		} {
			var opts []hostplugin.ViewOption
			if write {
				opts = append(opts, hostplugin.Writable())
			}
			v, err := s.View(t.Context(), name, opts...)
			if v != nil || !errors.Is(err, core.ErrProtocol) && !errors.Is(err, core.ErrPointer) {
				t.Errorf("%s: View = %v, %v", name, v, err)
			}
			if err != nil && !strings.Contains(err.Error(), "view fake/"+name+": ") {
				t.Errorf("%s: error does not say what it is about: %v", name, err)
			}
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
		if after := openFDs(t); !slices.Equal(fds, after) {
			t.Logf("other tests may open some, too: before %d, after %d", len(fds), len(after))
		}

		first := view(t, s, "twice:samples")
		defer closeView(t, first)
		if _, err := s.View(t.Context(), "twice:samples"); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("a lease that was granted twice: %v", err)
		}
	})
}

func openFDs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var fds []string
	for _, e := range entries {
		fds = append(fds, e.Name())
	}
	return fds
}

func TestPythonErrorsKeepTheirType(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		_, err := s.View(t.Context(), "raise:x")
		py, ok := errors.AsType[*core.PythonError](err)
		if !ok || py.Type != "KeyError" || py.Message != "x" || !errors.Is(err, core.ErrPython) {
			t.Errorf("View = %v", err)
		}
	})
}

func TestForgottenViewsAreReported(t *testing.T) { //nolint:paralleltest // it looks for all leaks of the process
	s := start(t)
	leaks := coretest.Leaks()
	if _, err := s.View(t.Context(), forgotten); err != nil {
		t.Fatal(err)
	}
	found := leaks()
	if len(found) != 1 || found[0].Name != forgotten {
		t.Errorf("leaks = %v", found)
	}
}
