package hostplugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func group(t *testing.T, s *hostplugin.Session, names ...string) *hostplugin.Group {
	t.Helper()
	g, err := s.Group(names...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGroup: a group shows what its names mean, in their order, and owns its views.
func TestGroup(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		var names []string
		for _, a := range coretest.Arrays() {
			names = append(names, a.Name)
		}
		g := group(t, s, names...)
		if g.View(names[0]) != nil {
			t.Error("there is a view before the first look")
		}
		if changed, err := g.Refresh(t.Context()); err != nil || !changed {
			t.Fatalf("Refresh = %v, %v", changed, err)
		}
		i := 0
		for name, v := range g.Views() {
			a := coretest.Arrays()[i]
			if i++; name != a.Name || v != g.View(name) || v.Name() != name {
				t.Fatalf("view %d is %q, of %v", i, name, v)
			}
			got := make([]byte, len(a.Data))
			if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !slices.Equal(got, a.Data) {
				t.Errorf("%s: %v, or other values than the program has", name, err)
			}
		}
		if i != len(names) || g.View("another") != nil {
			t.Errorf("%d views of %d names, and %v of a name that is none of them", i, len(names), g.View("another"))
		}
		kept := g.View("samples")
		if err := errors.Join(g.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		if _, err := kept.Bytes(); !errors.Is(err, core.ErrClosed) {
			t.Errorf("a view of a group that was closed: %v", err)
		}
		if v := g.View("samples"); v != nil {
			t.Errorf("a group that was closed has a view %v", v)
		}
		if _, err := g.Refresh(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("Refresh after Close = %v", err)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestGroupOfTheWritable: the options count for all views of a look.
func TestGroupOfTheWritable(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := group(t, s, "samples", "scalar")
	if _, err := g.Refresh(t.Context(), hostplugin.Writable()); err != nil {
		t.Fatal(err)
	}
	for name, v := range g.Views() {
		if !v.Writable() {
			t.Errorf("%s cannot be written", name)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupErrors: an error names the array that it is about, and what was looked at before stays.
func TestGroupErrors(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		for name, c := range map[string]struct {
			names []string
			kind  error
			says  string
		}{
			"a name that is not there": {[]string{"samples", "nothing", "scalar"}, core.ErrNotFound, "refresh fake/nothing"},
			"a lie":                    {[]string{"samples", "lie:short"}, core.ErrPointer, "refresh fake/lie:short"},
			"no name":                  {nil, core.ErrConfig, "no names"},
		} {
			g := group(t, s, c.names...)
			_, err := g.Refresh(t.Context(), hostplugin.NoWait())
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.says)
			}
			if err := g.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, names := range [][]string{{"samples", "samples"}, {"a", "b", "a"}} {
			if _, err := s.Group(names...); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "twice") {
				t.Errorf("Group(%q) = %v", names, err)
			}
		}
		if _, err := s.Group(`d["x"]`, `d['x']`); err != nil {
			t.Errorf("a plugin that is not Python may mean two things by them: %v", err)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestGroupThatIsClosedMeanwhile: Close ends a look that waits for a name.
func TestGroupThatIsClosedMeanwhile(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		g := group(t, s, "samples", "nothing")
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user has left")
		cancel(cause)
		if _, err := g.Refresh(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Refresh under a context that has ended = %v", err)
		}
		looked := make(chan error, 1)
		go func() {
			_, err := g.Refresh(t.Context())
			looked <- err
		}()
		eventually(t, "the first name is leased", func() bool { return info(t, s).Leases > 0 })
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-looked; !errors.Is(err, core.ErrClosed) {
			t.Errorf("Refresh of a group that was closed meanwhile = %v", err)
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestGroupOfManyUsers: looks of one group exclude each other, whoever makes them, and Close ends all.
func TestGroupOfManyUsers(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		names := []string{"samples", "scalar"}
		g := group(t, s, names...)
		looks := make(chan error, 4)
		for range cap(looks) {
			go func() {
				for {
					if _, err := g.Refresh(t.Context()); err != nil {
						looks <- err
						return
					}
					for name, v := range g.Views() {
						if v != nil && v.Name() != name {
							t.Errorf("the view of %s is of %s", name, v.Name())
						}
					}
				}
			}()
		}
		eventually(t, "there are views", func() bool { return g.View("samples") != nil && g.View("scalar") != nil })
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for range cap(looks) {
			if err := <-looks; !errors.Is(err, core.ErrClosed) {
				t.Errorf("a look at a group that was closed = %v", err)
			}
		}
		for _, name := range names {
			if v := g.View(name); v != nil {
				t.Errorf("%s has a view after Close", name)
			}
		}
		eventually(t, "no lease stands", func() bool { return info(t, s).Leases == 0 })
	})
}

// TestGroupOfASessionThatEnds: a group says so, and its views end with the session.
func TestGroupOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := group(t, s, "samples")
	if _, err := g.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := g.View("samples")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := v.Bytes(); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view after the session's end: %v", err)
	}
	for what, err := range map[string]error{"Refresh": second(g.Refresh(t.Context())), "Next": g.Next(t.Context()), "Group": second(s.Group("samples"))} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after the session's end = %v", what, err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestVersionsOfWhoPublishesNone: a plugin that is not Python publishes nothing, and who waits for that hears it at once.
func TestVersionsOfWhoPublishesNone(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, s *hostplugin.Session) {
		src := source(t, s, "samples")
		v, _, err := src.Refresh(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		g := group(t, s, "samples")
		same, changed, err := src.Latest(t.Context(), v)
		if !errors.Is(err, core.ErrUnsupported) || same != v || changed {
			t.Errorf("Latest = %v, %v, %v", same, changed, err)
		}
		if same, err = src.Next(t.Context(), v); !errors.Is(err, core.ErrUnsupported) || same != v {
			t.Errorf("Next = %v, %v", same, err)
		}
		if err := g.Next(t.Context()); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("Next of a group = %v", err)
		}
		closeView(t, v)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestViewsThatAreNoSources: Refresh takes the views that its source has given, and no others.
func TestViewsThatAreNoSources(t *testing.T) {
	t.Parallel()
	s := start(t)
	samples := view(t, s, "samples")
	defer closeView(t, samples)
	derived, err := samples.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer closeView(t, derived)
	other := view(t, s, "scalar")
	defer closeView(t, other)
	src := source(t, s, "samples")
	for what, v := range map[string]*core.View{"derived": derived, "of another name": other} {
		same, changed, err := src.Refresh(t.Context(), v)
		if !errors.Is(err, core.ErrConfig) || same != v || changed {
			t.Errorf("%s: %v, %v, %v", what, same, changed, err)
		}
	}
	again, _, err := src.Refresh(t.Context(), samples)
	if err != nil {
		t.Fatal(err)
	}
	if again != samples {
		closeView(t, again)
	}
}

func second[T any](_ T, err error) error { return err }
