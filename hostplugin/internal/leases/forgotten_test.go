package leases

import (
	"runtime"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestForgottenViewsEndWithTheClient: what the garbage collector has found forgotten stands until CloseViews,
// which gives it back. What was derived from it keeps the memory.
func TestForgottenViewsEndWithTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set("x", 7)
	var derived *core.View
	func() {
		forgotten, err := w.c.View(t.Context(), &Source{Name: "x"}, contract.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if derived, err = forgotten.Sub(0, 1, 3); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := w.c.View(t.Context(), &Source{Name: "x"}, contract.Request{}); err != nil {
				t.Fatal(err)
			}
		}
	}()
	gone := func() bool {
		w.c.mu.Lock()
		defer w.c.mu.Unlock()
		for l := range w.c.leases {
			if l.view.Value() != nil {
				return false
			}
		}
		return len(w.c.leases) == 3
	}
	for until := time.Now().Add(10 * time.Second); !gone(); runtime.GC() {
		if time.Now().After(until) {
			t.Fatal("the garbage collector finds no forgotten views")
		}
	}
	w.stand(3)
	if err := w.c.CloseViews(); err != nil {
		t.Error(err)
	}
	w.stand(1)
	if valueOf(t, derived) != 7 {
		t.Error("the memory of a derived view is gone")
	}
	if err := derived.Close(); err != nil {
		t.Error(err)
	}
	w.stand(0)
}
