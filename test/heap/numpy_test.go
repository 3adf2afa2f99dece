package heap

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// suiteRecord is what testdata/python/recorder.py writes.
type suiteRecord struct {
	Outcomes  map[string]string
	Seconds   map[string]float64
	Taken     int64 // blocks that the shared heap gave
	Threshold int64
}

// counts gives how many tests ended in which way.
func (r *suiteRecord) counts() map[string]int {
	n := map[string]int{}
	for _, outcome := range r.Outcomes {
		n[outcome]++
	}
	return n
}

// TestNumpySuite runs the tests that come with numpy with the shared heap and without, at the same
// time: each test must end in the same way. The threshold is low, so that nearly all arrays of the
// suite lie in the heap. NDBRIDGE_TEST_NUMPY_MARK chooses the tests as pytest's -m does; "" is all of
// them.
func TestNumpySuite(t *testing.T) {
	t.Parallel()
	mark, ok := os.LookupEnv("NDBRIDGE_TEST_NUMPY_MARK")
	if !ok {
		mark = "not slow"
	}
	var with, without suiteRecord
	var both sync.WaitGroup
	both.Go(func() { without = runSuite(t, mark, "") })
	both.Go(func() { with = runSuite(t, mark, library(t)) })
	both.Wait()
	t.Logf("without: %v", without.counts())
	t.Logf("with:    %v, %d blocks of %d bytes and more from the heap", with.counts(), with.Taken, with.Threshold)
	if with.Taken < 10_000 || without.Taken != 0 {
		t.Errorf("%d blocks with the heap, %d without", with.Taken, without.Taken)
	}
	if passed := without.counts()["passed"]; passed < 1_000 {
		t.Errorf("only %d tests pass without the heap: is this numpy's suite?", passed)
	}
	differ := 0
	names := maps.Clone(with.Outcomes)
	maps.Copy(names, without.Outcomes)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := with.Outcomes[name], without.Outcomes[name]; a != b {
			differ++
			t.Errorf("%s: %q with the heap, %q without", name, a, b)
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d tests end in another way", differ, len(names))
	}
}

func runSuite(t *testing.T, mark, lib string) (r suiteRecord) {
	t.Helper()
	helpers, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Error(err)
		return r
	}
	record := filepath.Join(t.TempDir(), "record.json")
	env := []string{
		"PYTHONPATH=" + helpers, "RECORD=" + record, "NDBRIDGE_HEAP_THRESHOLD=4096", "OPENBLAS_NUM_THREADS=1",
		// So that both runs fit beside each other, and skip the same tests for want of memory.
		"NPY_AVAILABLE_MEM=2 GB",
		// Where the tests find numpy-config.
		fmt.Sprintf("PATH=%s:%s", filepath.Dir(harness.Python(t)), os.Getenv("PATH")),
	}
	// Some tests of f2py need compilers and build tools that may not be there: an error in both runs.
	c := command(t, harness.Python(t), lib, env, []string{
		"-m", "pytest", "--pyargs", "numpy", "-m", mark, "-q", "-p", "recorder", "-p", "no:xdist", "-p", "no:cacheprovider",
		"--continue-on-collection-errors", "--tb=short",
	})
	c.Dir = t.TempDir()
	out, runErr := c.CombinedOutput()
	text, err := os.ReadFile(record)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Errorf("numpy's suite did not end (%v): %v\n%s", runErr, err, tail(string(out)))
	}
	t.Log(tail(string(out)))
	return r
}

// tail gives the last lines of what pytest printed.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}
