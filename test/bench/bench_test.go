package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

func TestMain(m *testing.M) {
	if spin := os.Getenv(pingPongVariable); spin != "" {
		if err := answerPings(spin); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestBriefRun keeps the benchmark in working order: it measures little, and holds that the report is
// whole.
func TestBriefRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bench", "view.json")
	var out strings.Builder
	args := []string{"-brief", "-python", harness.PythonAll(t), "-lib", filepath.Dir(harness.Library(t, "x")), "-json", file}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	const ways = 5
	if want := ways * len(briefSizes()); len(r.Rows) != want {
		t.Fatalf("%d rows, want %d", len(r.Rows), want)
	}
	for _, row := range r.Rows {
		if row.View.P50 <= 0 || row.View.P99 < row.View.P50 || row.Read.P50 <= row.View.P50 || row.View.N == 0 {
			t.Errorf("a row makes no sense: %+v", row)
		}
		if !strings.Contains(out.String(), row.Way) {
			t.Errorf("the table lacks %s", row.Way)
		}
	}
	if want := 2 + 3*3*2; len(r.Handoff) != want {
		t.Errorf("%d rows of the hand-off, want %d", len(r.Handoff), want)
	}
	for _, row := range r.Handoff {
		if row.View.P50 <= 0 || row.View.P99 < row.View.P50 || !strings.Contains(out.String(), row.Way) {
			t.Errorf("a row of the hand-off makes no sense: %+v", row)
		}
	}
	const heapWork = 4 + 2 + 1 // of numpy, torch, jax
	if want := heapWork * len(briefHeapSizes()); len(r.Heap) != want {
		t.Errorf("%d rows of the shared heap, want %d", len(r.Heap), want)
	}
	for _, row := range r.Heap {
		if row.On.P50 <= 0 || row.Off.P50 <= 0 || row.Ratio <= 0 || !strings.Contains(out.String(), row.Work) {
			t.Errorf("a row of the shared heap makes no sense: %+v", row)
		}
	}
	if r.Allocations.Count <= 0 || r.RoundTrip.P50 <= 0 || r.Machine.Numpy == "" || len(r.Ratios) != 1+(ways-1)*len(briefSizes()) {
		t.Errorf("the report is not whole: %+v", r)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var many []sample
	for i := range 100 {
		many = append(many, sample{View: 100 - time.Duration(i), Read: 200})
	}
	r := &report{}
	r.add(1, "x", many)
	if got := r.Rows[0].View; got.P50 != 51 || got.P99 != 100 || got.N != 100 {
		t.Errorf("quantiles of 1 to 100 are %+v", got)
	}
}
