package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/bench"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(otherSide); mode != "" {
		if err := answer(mode); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestBriefRun keeps the benchmark in working order: it measures little, and holds that the report is
// whole. No goal is held to: what runs beside tests decides about times.
func TestBriefRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bench", "handoff.json")
	var out strings.Builder
	lib := filepath.Dir(harness.Library(t, "x"))
	args := []string{"-brief", "-ndbridge", filepath.Join(lib, "..", "ndbridge"), "-python", harness.PythonAll(t), "-python-3.14", python314(t), "-lib", lib, "-json", file}
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
	checkRows(t, r.Rows, out.String())
	if len(r.Goals) != 26+2*3+5+4+3+4+7+5+3+8 { // of views, of numpy's memory, of forks, of attaching, of a training, of one that forks, of calls, of calls against peers, of calls at full rate, and of what is shown
		t.Errorf("%d goals", len(r.Goals))
	}
	for _, g := range r.Goals {
		if g.Measured == "" || !strings.Contains(out.String(), g.Measured) {
			t.Errorf("a goal makes no sense: %+v", g)
		}
	}
	if h := r.Hammer; h.Errors+h.Wrong != 0 || h.Looks == 0 {
		t.Errorf("at full rate: %+v", h)
	}
	if h := r.CallHammer; h.Errors+h.Wrong+h.Twice != 0 || h.Calls == 0 {
		t.Errorf("functions at full rate: %+v", h)
	}
	if r.Machine.Frameworks["numpy"] == "" || r.Idle.For <= 0 || len(r.LeftOut) != 3 {
		t.Errorf("the report is not whole: %+v, %+v, %+v", r.Machine, r.Idle, r.LeftOut)
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
	checkForks(t, r.Forks)
	if a := r.Attaching; len(a.BySocket) != 2 || len(a.ByPID) != 2 || len(a.Late) != 2 || a.Views == 0 || a.speed() <= 0 {
		t.Errorf("attaching: %+v", a)
	}
	if w := r.Training.Ways; len(w) != 4 || len(w[1].Steps) != 2 || len(w[2].Steps) != 2 || w[1].over(w[0]) <= 0 || len(r.Training.LeftOut) != 2 || r.Training.Period <= 0 {
		t.Errorf("a training: %+v", *r.Training)
	}
	if e := r.Epochs; e.Wrong != 0 || len(e.Steps) != 2 || len(e.Again) == 0 || e.Forks != 2*2 || e.speed() <= 0 || e.Memory.Idle <= 0 || e.Memory.Peak < e.Memory.Idle {
		t.Errorf("a training that forks: %+v", *e)
	}
	if s := r.Shown; s.Wrong != 0 || len(s.Page) != 2 || len(s.Watch) != 2 || len(s.Picture) != 2 || len(s.Exact) != 2 || len(s.Weights) != 2 || s.Video.Rate <= 0 || s.Video.Torn != 0 {
		t.Errorf("what is shown: %+v", *s)
	}
	if len(r.Memory) != 3 {
		t.Errorf("%d rows of memory", len(r.Memory))
	}
	for _, row := range r.Memory {
		if row.On.Peak < row.On.Idle || row.Off.Peak < row.Off.Idle || row.On.Idle <= 0 || row.Off.Idle <= 0 {
			t.Errorf("a row of memory makes no sense: %+v", row)
		}
	}
}

// TestOnlySaysWhereItRan: the head of a report of one part says as much as that of the whole.
func TestOnlySaysWhereItRan(t *testing.T) {
	t.Parallel()
	lib, python := filepath.Dir(harness.Library(t, "x")), harness.PythonAll(t)
	var out strings.Builder
	if err := run(t.Context(), []string{"-only", "heap", "-no-heap", "-python", python, "-lib", lib}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	head := fmt.Sprintf(`(?m)^\d+ x .+, Linux .+, %s, CPython [\d.]+ \(%s\), numpy \d.+, torch \d.+, jax \d.+$`, runtime.Version(), regexp.QuoteMeta(python))
	if !regexp.MustCompile(head).MatchString(out.String()) {
		t.Errorf("the report does not say %s:\n%s", head, out.String())
	}
}

func python314(t *testing.T) string {
	t.Helper()
	for _, python := range harness.Pythons(t) {
		if strings.Contains(python, "/3.14-new/") {
			return python
		}
	}
	t.Fatal("the matrix has no Python 3.14")
	return ""
}

func checkForks(t *testing.T, f *forked) {
	t.Helper()
	if f.On.Promoted != len(f.On.Took) || f.Off.Promoted != 0 || len(f.Off.Took) == 0 {
		t.Errorf("%d promotions with the heap, %d without", f.On.Promoted, f.Off.Promoted)
	}
	for _, w := range []writing{f.On, f.Off} {
		if w.Lost+w.Failed != 0 || w.Writes == 0 || w.Calls == 0 || w.Longest <= 0 {
			t.Errorf("writers beside forks: %+v", w)
		}
	}
	if f.ForkOn.first() <= 0 || f.ForkOn.later() <= 0 || f.ForkOff.first() <= 0 || f.ForkOff.later() <= 0 {
		t.Errorf("forks: %+v, %+v", f.ForkOn, f.ForkOff)
	}
}

// checkRows holds that all that can be measured in one environment was.
func checkRows(t *testing.T, rows bench.Rows, printed string) {
	t.Helper()
	const sizes, ours, frameworks = 2, 3, 3
	const (
		refreshes = ours*frameworks*(sizes+2) + 1 + 1 // two by several callers; after silence, and on two CPUs
		groups    = 2
		newViews  = 2 * frameworks * sizes // published or not
		busy      = 3
		versions  = 1 + 2 + 2 + 4 // Latest, Next, and publications
		exports   = frameworks * sizes
		peers     = (2 + 2 + 1 + 1) * sizes
		bareCalls = 5
		calls     = 1 + 1 + sizes + 2*sizes + 5*sizes // empty, computing, peers
	)
	if want := refreshes + groups + newViews + busy + versions + exports + peers + bareCalls + calls; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	for _, row := range rows {
		if row.P50 <= 0 || row.P99 < row.P50 || row.P999 < row.P99 || row.N == 0 || !strings.Contains(printed, row.Way) {
			t.Errorf("a row makes no sense: %+v", row)
		}
	}
}
