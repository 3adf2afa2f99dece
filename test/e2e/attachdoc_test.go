package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// lookAtTraining is the example of docs/attach.md.
func lookAtTraining(ctx context.Context, host *hostplugin.Host, use func(weights *core.View)) error {
	training, err := host.Attach(ctx, hostplugin.Name("trainer"))
	if err != nil {
		return err
	}
	defer training.Close() // the program goes on
	weights, err := training.View(ctx, "weights")
	if err != nil {
		return err
	}
	defer weights.Close()
	use(weights)
	return nil
}

// TestAttachedTraining attaches to the program of docs/attach.md twice, and sees it go on.
func TestAttachedTraining(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	script, err := os.ReadFile("testdata/docs/attach.py")
	if err != nil {
		t.Fatal(err)
	}
	run := harness.RunAlone(t, string(script), harness.RunningOptions{Heap: true, Silent: true, Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	host := harness.NewHost(t)
	var last float64
	for range 2 {
		harness.Eventually(t, harness.StartBound, "the training is seen, and goes on", func() bool {
			before := last
			err := lookAtTraining(t.Context(), host, func(weights *core.View) {
				data := slice[float64](t, weights)
				for end := time.Now().Add(time.Second); data[500] == last && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				last = data[500]
			})
			return err == nil && last > before
		})
	}
	if !run.Alive() {
		t.Error("the program has ended")
	}
}
