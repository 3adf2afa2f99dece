package leases

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestForkIsNoVersion: Next does not return, and its view stays, when a fork has taken an offer away, which is told
// of as another publication of the same version.
func TestForkIsNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x", "y")
	sources := []*Source{{Name: "x"}, {Name: "y"}}
	v, err := w.c.Next(t.Context(), sources[0], nil, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	views := make([]*core.View, 2)
	if _, err := w.c.nextAll(t.Context(), sources, views); err != nil {
		t.Fatal(err)
	}
	w.fork()
	w.separate()
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if next, err := w.c.Next(ctx, sources[0], v, contract.Request{}); !errors.Is(err, context.DeadlineExceeded) || next != v || valueOf(t, v) != 1 {
			t.Fatalf("Next after a fork = %v, %v; the view was %v", next, err, v)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.c.nextAll(ctx, sources, views); !errors.Is(err, context.DeadlineExceeded) || valueOf(t, views[0]) != 1 {
		t.Fatalf("NextAll after a fork = %v", err)
	}
	w.publish(2, "x", "y")
	if v, err = w.c.Next(t.Context(), sources[0], v, contract.Request{}); err != nil || v.Version() != 2 || valueOf(t, v) != 2 {
		t.Fatalf("Next after a version = %v, %v", v, err)
	}
	if _, err := w.c.nextAll(t.Context(), sources, views); err != nil || valueOf(t, views[0]) != 2 || valueOf(t, views[1]) != 2 {
		t.Fatalf("NextAll after a version = %v", err)
	}
	closeView(t, v)
	for _, v := range views {
		closeView(t, v)
	}
}
