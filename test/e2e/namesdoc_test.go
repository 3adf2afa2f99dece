package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// watchTraining is the example of docs/names.md.
func watchTraining(ctx context.Context, training *hostplugin.Session, use func(step int, weights []float32)) error {
	weight, err := training.View(ctx, "main().model.weight") // waits until main has a model
	if err != nil {
		return err
	}
	defer weight.Close()
	weights, err := core.Slice[float32](weight) // live: each step of the optimizer changes it
	if err != nil {
		return err
	}
	for range 20 {
		result, err := training.Value(ctx, "main().step")
		if err != nil {
			return err
		}
		var step int
		if err := result.Decode(&step); err != nil {
			return err
		}
		use(step, weights)
		if err := result.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestTrainingInMain looks into a training that keeps all in main: as docs/names.md does, and again and again through the
// mailbox.
func TestTrainingInMain(t *testing.T) {
	t.Parallel()
	training := documented(t, harness.PythonAll(t), "train.py")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	last, looks := -1, 0
	if err := watchTraining(ctx, training, func(step int, weights []float32) {
		if step < last {
			t.Errorf("step %d came after %d", step, last)
		}
		last = step
		looks++
		for before := weights[0]; weights[0] == before; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatal("the weights that the host sees do not change")
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if looks != 20 || last <= 0 {
		t.Errorf("%d looks have come to step %d", looks, last)
	}
	weights, err := training.Source("main().model.weight")
	if err != nil {
		t.Fatal(err)
	}
	weight, _, err := weights.Refresh(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	batches, err := training.Group("main().batch", "main().model.bias")
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	others := 0
	for others < 3 && ctx.Err() == nil {
		var changed bool
		if weight, changed, err = weights.Refresh(ctx, weight); err != nil || changed {
			t.Fatalf("main's weights are others now: %v, %v", changed, err)
		}
		if changed, err = batches.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if changed {
			others++
		}
	}
	if others < 3 || batches.View("main().batch").Shape()[0] != 64 {
		t.Errorf("the batch has changed %d times", others)
	}
	if err := training.Set(ctx, "main().model.tag", 7); err != nil {
		t.Error(err)
	}
	wantCategory(t, training.Set(ctx, "main().step", 7), core.ErrUnsupported)
	shape, err := training.Func(ctx, "main().batch.size")
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, shape, 0); got != int64(64) {
		t.Errorf("the batch has %v rows", got)
	}
}
