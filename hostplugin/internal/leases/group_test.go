package leases

import (
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestRefreshAll: one question for all that has to be asked, each name with its own result.
func TestRefreshAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"a", "b", "c", "offered"}
	for i, name := range names {
		w.set(name, float64(i+1))
	}
	w.publish(4, "offered")
	var sources []*Source
	for _, name := range names {
		sources = append(sources, &Source{Name: name})
	}
	views := make([]*core.View, len(names))
	refresh := func(wantChanged bool, want ...float64) {
		t.Helper()
		before := slices.Clone(views)
		changed, failed, err := w.c.RefreshAll(t.Context(), sources, views, core.Request{})
		if err != nil || changed != wantChanged {
			t.Fatalf("RefreshAll = %v, %d, %v", changed, failed, err)
		}
		for i, v := range views {
			if got := valueOf(t, v); got != want[i] {
				t.Errorf("%s shows %v, want %v", names[i], got, want[i])
			}
			if before[i] != nil && before[i] != v {
				if _, err := before[i].Bytes(); !errors.Is(err, core.ErrClosed) {
					t.Errorf("the view of %s that was replaced is open", names[i])
				}
			}
		}
	}
	refresh(true, 1, 2, 3, 4)
	refresh(false, 1, 2, 3, 4)
	w.set("b", 20)
	refresh(true, 1, 20, 3, 4)
	w.publish(40, "offered")
	w.set("c", 30)
	refresh(true, 1, 20, 30, 40)
	refresh(false, 1, 20, 30, 40)
	w.mu.Lock()
	w.silent = true
	w.mu.Unlock()
	w.set("a", 10)
	refresh(true, 10, 20, 30, 40)
	w.mu.Lock()
	w.silent = false
	delete(w.arrays, "b")
	w.arrays["a"].value = 11
	w.mu.Unlock()
	w.set("c", 31)
	changed, failed, err := w.c.RefreshAll(t.Context(), sources, views, core.Request{NoWait: true})
	if !errors.Is(err, core.ErrNotFound) || failed != 1 || !changed || valueOf(t, views[1]) != 20 || valueOf(t, views[2]) != 31 {
		t.Errorf("with a name that has gone: %v, %d, %v; it shows %v and %v", changed, failed, err, valueOf(t, views[1]), valueOf(t, views[2]))
	}
	w.c.Flush(t.Context())
	if n, holds := w.leases(), w.writer.Holds(); n+holds != 4 {
		t.Errorf("%d leases and %d holds for 4 views", n, holds)
	}
	for _, v := range views {
		closeView(t, v)
	}
}
