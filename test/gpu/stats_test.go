//go:build cuda

package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestStats has the GPU sum up arrays of every kind of its memory while the work that writes them still runs: the figures are those
// of what that work writes.
func TestStats(t *testing.T) {
	for _, f := range frameworks(t) {
		t.Run(f.title(), func(t *testing.T) {
			run := start(t, f.name, f.env)
			for _, k := range f.kinds {
				t.Run(k.name, func(t *testing.T) { sumUp(t, run, f, k) })
				run.NoLeases(t)
			}
		})
	}
}

func sumUp(t *testing.T, run *harness.Run, f framework, k kind) {
	t.Helper()
	const before, after = 1, 2
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, %d)", k.name, before))
	view := run.View(t, "a")
	if view.Device().Kind != core.CUDA {
		closeView(t, view)
		return // it is read as any host memory
	}
	first, err := stats.Of(t.Context(), view, nil)
	if err != nil {
		t.Fatal(err)
	}
	closeView(t, view)
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, %d)", k.name, before))
	view, ran, runs := viewLate(t, run, fmt.Sprintf("('a', %q, %d)", k.name, after), false)
	defer closeView(t, view)
	row := &report.Row{Table: "Figures of an array that is being written"}
	row.Set("framework", f.title())
	row.Set("memory", k.name)
	row.Set("route", view.Route())
	row.Set("work ran when asked", yes(ran))
	row.Set("and when given", yes(runs))
	numbers, err := view.As(core.Float32) // cuda.core has bytes
	if err != nil {
		t.Fatal(err)
	}
	defer closeView(t, numbers)
	begun := time.Now()
	s, err := stats.Of(t.Context(), numbers, &stats.Options{Bins: 4, Low: 1, High: 3})
	if err != nil {
		t.Fatal(err)
	}
	row.Set("the figures came after", time.Since(begun).Round(10*time.Microsecond))
	if s.Mean != after || s.Min != after || s.Max != after || s.Histogram.Counts[2] != count || s.Std != 0 {
		t.Errorf("while it was written, %+v; expected only %d", s, after)
	}
	sampled, err := stats.Of(t.Context(), numbers, &stats.Options{Sample: 4096})
	if err != nil {
		t.Fatal(err)
	}
	// A copy would have every k-th element, and no sweep.
	if sampled.Sweep != count/4096 || sampled.Seen != 4096 || sampled.Mean != after {
		t.Errorf("a sample of what was written: %+v", sampled)
	}
	row.Set("all of it the first time", first.Taken.Round(10*time.Microsecond))
	row.Set("a sample of 4096", sampled.Taken.Round(time.Microsecond))
	write(t, row)
}

func closeView(t *testing.T, v *core.View) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
