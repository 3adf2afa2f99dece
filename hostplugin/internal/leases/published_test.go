package leases

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// latest takes the newest version, which there must be.
func (w *world) latest(s *Source, v *core.View) (*core.View, bool) {
	w.t.Helper()
	next, changed, err := w.c.Latest(w.t.Context(), s, v, contract.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.keep(next), changed
}

// shows holds a view to a version and its value.
func (w *world) shows(v *core.View, version uint64, value float64) {
	w.t.Helper()
	if w.keep(v); v.Version() != version || v.Published().IsZero() || valueOf(w.t, v) != value {
		w.t.Errorf("version %d of %v shows %v, want version %d, which shows %v", v.Version(), v.Published(), valueOf(w.t, v), version, value)
	}
}

func isClosed(v *core.View) bool {
	_, err := v.Bytes()
	return errors.Is(err, core.ErrClosed)
}

// TestLatest follows the versions of a name and no variable; the program is asked for nothing that is offered.
func TestLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set("x", 99)
	s := &Source{Name: "x"}
	missing := func(v *core.View) {
		t.Helper()
		next, changed, err := w.c.Latest(t.Context(), s, v, contract.Request{})
		e, ok := errors.AsType[*core.Error](err)
		if !errors.Is(err, core.ErrNotFound) || changed || next != v || !ok || e.Remedy == "" {
			t.Errorf("Latest of what is not published = %v, %v, %v", next, changed, err)
		}
	}
	missing(nil)
	w.publish(1, "x")
	v, changed := w.latest(s, nil)
	if w.shows(v, 1, 1); !changed {
		t.Error("the first view is no other one")
	}
	for i := 2.0; i <= 4; i++ {
		w.publish(i, "other")
		if same, changed := w.latest(s, v); same != v || changed {
			t.Error("another view of the same version")
		}
	}
	w.publish(2, "x")
	w.publish(3, "x")
	w.publish(4, "x")
	next, changed := w.latest(s, v)
	if w.shows(next, 4, 4); !changed || !isClosed(v) {
		t.Errorf("a newer version: changed is %v, the view before is closed: %v", changed, isClosed(v))
	}
	v = next
	if asked, mailed := w.took(); len(asked)+len(mailed) != 0 {
		t.Errorf("the program was asked for %q and %q", asked, mailed)
	}
	w.unpublish("x")
	missing(v)
	w.set("x", 98)
	missing(v)
	w.shows(v, 4, 4)
	w.unset("x")
	w.publish(5, "x")
	if next, changed = w.latest(s, v); !changed || !isClosed(v) {
		t.Error("a name that came again has the same view")
	}
	w.shows(next, 5, 5)
	w.c.Flush(t.Context())
	if n := w.writer.Holds(); n != 1 {
		t.Errorf("%d offers are held for one view", n)
	}
}

// TestLatestOfWhatIsAskedFor: of what is not offered, or not in that way, the program gives a lease, and the
// table tells no less of it.
func TestLatestOfWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, req := range map[string]contract.Request{"writable": {Writable: true}, "not offered": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &Source{Name: "x"}
			publish := func(value float64) {
				w.publish(value, "x")
				if !req.Writable {
					w.withdraw("x")
				}
			}
			publish(1)
			v, _, err := w.c.Latest(t.Context(), s, nil, req)
			if err != nil {
				t.Fatal(err)
			}
			w.took()
			if same, changed := w.latest(s, v); changed || same != v {
				t.Error("another view of the same version")
			}
			if asked, mailed := w.took(); len(asked)+len(mailed) != 0 {
				t.Errorf("the program was asked for %q and %q though nothing was published", asked, mailed)
			}
			publish(2)
			next, changed := w.latest(s, v)
			if w.shows(next, 2, 2); !changed || !isClosed(v) || next.Writable() != req.Writable {
				t.Errorf("changed is %v, writable %v", changed, next.Writable())
			}
			if asked, mailed := w.took(); len(asked) != 0 || len(mailed) != 1 || mailed[0] != "lease x" {
				t.Errorf("the program was asked for %q and %q", asked, mailed)
			}
		})
	}
}

// TestNoTable: without shared memory there are no versions to follow, and views by gRPC.
func TestNoTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.c.Handoff = nil
	w.publish(1, "x")
	s := &Source{Name: "x"}
	_, _, latest := w.c.Latest(t.Context(), s, nil, contract.Request{})
	_, next := w.c.Next(t.Context(), s, nil, contract.Request{})
	_, nextAll := w.c.nextAll(t.Context(), []*Source{s}, make([]*core.View, 1))
	for call, err := range map[string]error{"Latest": latest, "Next": next, "NextAll": nextAll} {
		if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrUnsupported) || !ok || e.Remedy == "" {
			t.Errorf("%s: %v", call, err)
		}
	}
	w.shows(w.view(s), 1, 1)
	if asked, mailed := w.took(); len(asked) != 1 || len(mailed) != 0 {
		t.Errorf("the program was asked for %q and %q", asked, mailed)
	}
}
