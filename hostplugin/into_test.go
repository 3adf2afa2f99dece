package hostplugin_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// awake has both sides look for each other as long as a busy machine may need, so that views go through
// the ring.
func awake(p *hostplugin.Program) { p.HandoffSpin = new(10 * time.Millisecond) }

func into(tb testing.TB, src *hostplugin.Source, v *core.View) {
	tb.Helper()
	if err := src.Into(tb.Context(), v); err != nil {
		tb.Fatal(err)
	}
}

// TestIntoMakesNoGarbage: with a real program behind it. The reports of leaks, which this package's tests
// ask for, take none either.
func TestIntoMakesNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	s := startWith(t, awake)
	for name, opts := range map[string][]hostplugin.ViewOption{
		"samples": nil,
		"picture": {hostplugin.NoCopy(), hostplugin.NoWait()},
		"empty":   nil,
	} {
		src := source(t, s, name)
		var v core.View
		view := func() {
			if err := src.Into(t.Context(), &v, opts...); err != nil {
				t.Fatal(err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
		// On a busy machine an answer may come late, and then the next views are asked for by gRPC, so it is
		// few views at a time.
		eventually(t, "views of "+name+" without an allocation", func() bool {
			return testing.AllocsPerRun(50, view) == 0
		})
	}
}

// TestIntoAnything: one View for all arrays, one after another, by every way.
func TestIntoAnything(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		var v core.View
		for range 2 {
			for _, a := range coretest.Arrays() {
				into(t, source(t, s, a.Name), &v)
				got := make([]byte, len(a.Data))
				if _, err := core.CopyBytes(got, &v); err != nil || !slices.Equal(got, a.Data) || v.Name() != a.Name {
					t.Errorf("%s: %v, or other values than the program has", a.Name, err)
				}
				closeView(t, &v)
				if _, err := v.Bytes(); !errors.Is(err, core.ErrClosed) || v.Name() != a.Name {
					t.Errorf("%s after Close: %v", v.Name(), err)
				}
			}
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestIntoAnOpenView: it is refused, nothing is leased for it, and it stays what it was.
func TestIntoAnOpenView(t *testing.T) {
	t.Parallel()
	s := start(t)
	var v core.View
	into(t, source(t, s, "samples"), &v)
	err := source(t, s, "picture").Into(t.Context(), &v)
	if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "view fake/picture: ") || !strings.Contains(err.Error(), "close it first") {
		t.Errorf("Into a View that is open = %v", err)
	}
	if x, err := core.At[float32](&v, 0, 0); err != nil || v.Name() != "samples" {
		t.Errorf("the View is %s of %v, %v", v.Name(), x, err)
	}
	if n := info(t, s).Leases; n != 1 {
		t.Errorf("%d leases stand", n)
	}
	closeView(t, &v)
}

// TestIntoAfterErrors: a View that could not be filled is closed, and as good as before.
func TestIntoAfterErrors(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		var v core.View
		for range 2 {
			for name, kind := range map[string]error{
				"nothing": core.ErrNotFound, "beyond:samples": core.ErrProtocol, "lie:short": core.ErrPointer,
			} {
				err := source(t, s, name).Into(t.Context(), &v, hostplugin.NoWait())
				if !errors.Is(err, kind) || !v.Closed() {
					t.Errorf("Into from %s = %v, closed: %v", name, err, v.Closed())
				}
				closeView(t, &v)
			}
			into(t, source(t, s, "samples"), &v)
			closeView(t, &v)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := source(t, start(t), "samples").Into(t.Context(), &v); err != nil {
			t.Errorf("Into from another session = %v", err)
		}
		closeView(t, &v)
	})
}

// TestIntoBesideDerivedViews: what was derived from a View stays right while that is filled with
// something else, and its lease stands as long.
func TestIntoBesideDerivedViews(t *testing.T) {
	t.Parallel()
	s := start(t)
	samples, picture := source(t, s, "samples"), source(t, s, "picture")
	var v core.View
	into(t, samples, &v)
	want, err := core.At[float32](&v, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	turned, err := v.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		closeView(t, &v)
		into(t, picture, &v)
		if x, err := core.At[float32](turned, 2, 1); err != nil || x != want || turned.Name() != "samples" {
			t.Errorf("the derived view of %s has %v, %v; want %v", turned.Name(), x, err, want)
		}
	}
	eventually(t, "two leases stand", func() bool { return info(t, s).Leases == 2 })
	closeView(t, turned)
	closeView(t, &v)
	if turned.Name() != "samples" || v.Name() != "picture" {
		t.Errorf("closed views of %s and %s", turned.Name(), v.Name())
	}
	eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
}

// TestSessionClosesWhatItFilled: the views that it has filled last, and no others.
func TestSessionClosesWhatItFilled(t *testing.T) {
	t.Parallel()
	first, second := start(t), start(t)
	var mine, moved core.View
	into(t, source(t, first, "samples"), &mine)
	into(t, source(t, first, "samples"), &moved)
	closeView(t, &moved)
	into(t, source(t, second, "samples"), &moved)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !mine.Closed() || moved.Closed() {
		t.Errorf("closed: %v and %v, want the first alone", mine.Closed(), moved.Closed())
	}
	closeView(t, &moved)
}

// TestSessionEndsBesideInto: Into and the end of the session at once leave a view that is open and
// right, or the error that says so.
func TestSessionEndsBesideInto(t *testing.T) {
	t.Parallel()
	for range 10 {
		s := start(t)
		src := source(t, s, "samples")
		var callers sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range 4 {
			callers.Go(func() {
				var v core.View
				for n := 0; ; n++ {
					if err := src.Into(t.Context(), &v); err != nil {
						if !errors.Is(err, core.ErrClosed) && !errors.Is(err, core.ErrUnavailable) {
							t.Errorf("Into beside Close = %v", err)
						}
						break
					}
					if _, err := core.At[float32](&v, 0, 0); err != nil && !errors.Is(err, core.ErrClosed) {
						t.Error(err)
					}
					closeView(t, &v)
					if n == 0 {
						begun <- struct{}{}
					}
				}
				if !v.Closed() {
					t.Error("a View is open after an error")
				}
			})
		}
		<-begun
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}
