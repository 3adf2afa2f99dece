package inspect

import (
	"context"
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
)

// TestCounterKeepsItsReason reads a step that is not there, and once more when nobody waits for it.
func TestCounterKeepsItsReason(t *testing.T) {
	t.Parallel()
	counter, err := looks.NewCounter(startProgram(t, "step = 1\nimport time\ntime.sleep(60)\n"), "steps")
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, ctx := range []context.Context{t.Context(), ended} {
		if n := counter.Count(ctx); n != nil {
			t.Errorf("step %v of a program that has no such name", *n)
		}
		if err := counter.Err(); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("no step because of %v, want %v", err, core.ErrNotFound)
		}
	}
}
