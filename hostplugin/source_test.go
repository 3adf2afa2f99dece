package hostplugin_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

var (
	kills  = flag.Int("kills", 0, "how often a program is killed while views are taken; 0 is the usual number")
	hammer = flag.Duration("hammer", time.Second, "how long views are taken at full rate")
)

// TestWhichWay: views go through shared memory if the program's settings say so.
func TestWhichWay(t *testing.T) {
	t.Parallel()
	for want, handoff := range map[string]bool{"no wait true": true, "no wait false": false} {
		s := startWith(t, func(p *hostplugin.Program) { p.Handoff.Off = !handoff })
		src := source(t, s, "way:samples")
		eventually(t, want, func() bool { // a busy machine may answer late, and then it is gRPC
			v, err := src.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer closeView(t, v)
			return v.Framework() == want
		})
	}
}

func source(tb testing.TB, s *hostplugin.Session, name string) *hostplugin.Source {
	tb.Helper()
	src, err := s.Source(name)
	if err != nil || src.Name() != name {
		tb.Fatalf("Source(%q) = %v, %v", name, src, err)
	}
	return src
}

// TestSources: a prepared name gives the same views as others do, whatever its request, and the same
// errors.
func TestSources(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		for _, a := range coretest.Arrays() {
			src := source(t, s, a.Name)
			for range 3 {
				checkSource(t, src, a)
			}
		}
		samples := source(t, s, "samples")
		for _, writable := range []bool{false, true, false} {
			var opts []hostplugin.ViewOption
			if writable {
				opts = append(opts, hostplugin.Writable())
			}
			v, err := samples.View(t.Context(), opts...)
			if err != nil || v.Writable() != writable {
				t.Fatalf("View = %v, %v; want one that is writable: %v", v, err, writable)
			}
			closeView(t, v)
		}
		if _, err := source(t, s, "nothing").View(t.Context(), hostplugin.NoWait()); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("View of nothing = %v", err)
		}
		for _, lie := range []string{"beyond:samples", "lie:short", "lie:nothing"} {
			_, err := source(t, s, lie).View(t.Context())
			if !errors.Is(err, core.ErrProtocol) && !errors.Is(err, core.ErrPointer) || !strings.Contains(err.Error(), "view fake/"+lie) {
				t.Errorf("%s: %v", lie, err)
			}
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := samples.View(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("View after Close = %v", err)
		}
		if _, err := s.Source("samples"); !errors.Is(err, core.ErrClosed) {
			t.Errorf("Source after Close = %v", err)
		}
	})
}

func checkSource(t *testing.T, src *hostplugin.Source, a coretest.Array) {
	t.Helper()
	v, err := src.View(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer closeView(t, v)
	got := make([]byte, len(a.Data))
	if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !slices.Equal(got, a.Data) || v.Name() != a.Name {
		t.Errorf("%s: %v, or other values than the program has", a.Name, err)
	}
}

// TestHammer: many callers at full rate, all right, and nothing stays of it.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := start(t)
	fds, deadline := descriptors(t, info(t, s).PID), time.Now().Add(*hammer)
	var callers sync.WaitGroup
	for i := range 8 {
		a := coretest.Arrays()[i]
		src := source(t, s, a.Name)
		callers.Go(func() {
			for time.Now().Before(deadline) && !t.Failed() {
				checkSource(t, src, a)
			}
		})
	}
	callers.Wait()
	eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	if now := descriptors(t, info(t, s).PID); now > fds+len(coretest.Arrays()) {
		t.Errorf("the program has %d descriptors open, and had %d", now, fds)
	}
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestKilledAtAnyMoment: a program that is killed while many ask leaves each with a right view or with
// the error that says so, at once.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	times := *kills
	if times == 0 {
		times = 25
		if os.Getenv("CI") != "" {
			times = 100
		}
	}
	host := newHost(t, fake("serve"))
	for range times {
		killOnce(t, host)
		if t.Failed() {
			return
		}
	}
}

func killOnce(t *testing.T, host *hostplugin.Host) {
	t.Helper()
	s, err := host.Start(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	pid := info(t, s).PID
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var views atomic.Int64
	var callers sync.WaitGroup
	for i := range 8 {
		a := coretest.Arrays()[i]
		src := source(t, s, a.Name)
		callers.Go(func() {
			for {
				v, err := src.View(ctx)
				if err != nil {
					if !errors.Is(err, core.ErrUnavailable) {
						t.Errorf("View of a program that was killed = %v", err)
					}
					return
				}
				got := make([]byte, len(a.Data))
				if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !slices.Equal(got, a.Data) {
					t.Errorf("%s: %v, or other values than the program has", a.Name, err)
				}
				closeView(t, v)
				views.Add(1)
			}
		})
	}
	moment := rand.Int64N(200)
	eventually(t, "views are taken", func() bool { return views.Load() >= moment })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSessionRefresh looks at several names at once, of which each has its own result: what is there, what is not, what lies about its memory,
// and what is another session's.
func TestSessionRefresh(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		looks := []hostplugin.Look{
			{Source: source(t, s, "samples")},
			{Source: source(t, s, "nothing")},
			{Source: source(t, start(t), "samples")},
			{Source: source(t, s, "lie:short")},
			{Source: source(t, s, "scalar")},
		}
		kinds := []error{nil, core.ErrNotFound, core.ErrConfig, core.ErrPointer, nil}
		for round := range 3 {
			s.Refresh(t.Context(), looks, hostplugin.NoWait(), hostplugin.Writable())
			for i, l := range looks {
				switch {
				case !errors.Is(l.Err, kinds[i]):
					t.Errorf("%d: %s: %v, want %v", i, l.Source.Name(), l.Err, kinds[i])
				case l.Err != nil && (l.View != nil || l.Changed || !strings.Contains(l.Err.Error(), "refresh fake/"+l.Source.Name())):
					t.Errorf("%d: %v, %v, %v", i, l.View, l.Changed, l.Err)
				case l.Err == nil && (l.View.Name() != l.Source.Name() || l.Changed != (round == 0) || !l.View.Writable()):
					t.Errorf("%d: in round %d %s gives %v, %v", i, round, l.Source.Name(), l.View, l.Changed)
				}
			}
			looks[0], looks[4] = looks[4], looks[0]
		}
		for _, i := range []int{0, 4} {
			if err := looks[i].View.Close(); err != nil {
				t.Error(err)
			}
		}
		s.Refresh(t.Context(), nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Refresh(t.Context(), looks)
		for _, l := range looks {
			if l.Err == nil {
				t.Errorf("%s of a session that is closed", l.Source.Name())
			}
		}
	})
}
