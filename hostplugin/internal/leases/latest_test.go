package leases

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestLatestDoesNotWait for a name that is unpublished while it is asked for; views that it gives are looked at again as
// any others.
func TestLatestDoesNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &Source{Name: "seen"}
	w.publish(1, "seen")
	w.withdraw("seen")
	v, _, err := w.c.Latest(t.Context(), s, nil, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := w.c.of(s, v); err != nil || l.req.NoWait {
		t.Errorf("Refresh of the view would not wait: %v", err)
	}
	w.publish(2, "seen")
	w.withdraw("seen")
	w.unset("seen") // the table does not tell of it yet
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if same, _, err := w.c.Latest(ctx, s, v, contract.Request{}); !errors.Is(err, core.ErrNotFound) || same != v {
		t.Errorf("Latest of what is unpublished meanwhile = %v", err)
	}
	closeView(t, v)
}
