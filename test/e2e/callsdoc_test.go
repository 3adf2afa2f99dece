package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// handleThreshold is the example of docs/calling.md.
func handleThreshold(session *hostplugin.Session, thresholds map[string]float64) error {
	err := session.Handle("threshold", func(_ context.Context, args hostplugin.Args) (any, error) {
		var name string
		var scores *core.View // the program's own array
		if err := args.Decode(&name, &scores); err != nil {
			return nil, err
		}
		return thresholds[name], nil
	})
	return err
}

// TestDocumentedHandler runs the documentation's program, which calls its host.
func TestDocumentedHandler(t *testing.T) {
	t.Parallel()
	session := documented(t, harness.Python(t), "above.py")
	if err := handleThreshold(session, map[string]float64{"cats": 0.5}); err != nil {
		t.Fatal(err)
	}
	above, err := session.Func(t.Context(), "above")
	if err != nil {
		t.Fatal(err)
	}
	scores, err := session.New(core.Float64, 3)
	if err != nil {
		t.Fatal(err)
	}
	copy(slice[float64](t, scores), []float64{0.4, 0.5, 0.6})
	r, err := above.Call(t.Context(), "cats", scores)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := slice[bool](t, r.View()); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("scores above the threshold: %v", got)
	}
}
