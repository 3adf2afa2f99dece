package heap

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestNumpySuite runs the tests that come with numpy with the shared heap. Each test that does not pass must end in the same way
// without it. The threshold is low, so that nearly all arrays of the suite lie in the heap. NDBRIDGE_TEST_NUMPY_MARK chooses the
// tests as pytest's -m does; "" is all of them.
func TestNumpySuite(t *testing.T) {
	t.Parallel()
	mark, ok := os.LookupEnv("NDBRIDGE_TEST_NUMPY_MARK")
	if !ok {
		mark = "not slow"
	}
	with := runSuite(t, mark, library(t), nil)
	t.Logf("with:    %v, %d blocks of %d bytes and more from the heap", with.counts(), with.Taken, with.Threshold)
	if with.Taken < 10_000 {
		t.Errorf("%d blocks are from the heap", with.Taken)
	}
	if passed := with.counts()["passed"]; passed < 1_000 {
		t.Errorf("only %d tests pass: is this numpy's suite?", passed)
	}
	only := slices.DeleteFunc(slices.Sorted(maps.Keys(with.Outcomes)), func(name string) bool { return with.Outcomes[name] == "passed" })
	without := runSuite(t, mark, "", only)
	t.Logf("without: %v", without.counts())
	if without.Taken != 0 {
		t.Errorf("%d blocks are from the heap without the heap", without.Taken)
	}
	differ := 0
	for _, name := range only {
		if a, b := with.Outcomes[name], without.Outcomes[name]; a != b {
			differ++
			t.Errorf("%s: %q with the heap, %q without", name, a, b)
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d tests end in another way", differ, len(with.Outcomes))
	}
}

// runSuite runs the tests of a mark, or only some of them, in a program with the library, or without one.
func runSuite(t *testing.T, mark, lib string, only []string) (r suiteRecord) {
	t.Helper()
	helpers, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Error(err)
		return r
	}
	record := filepath.Join(t.TempDir(), "record.json")
	env := []string{
		"PYTHONPATH=" + helpers, "RECORD=" + record, "NDBRIDGE_HEAP_THRESHOLD=4096", "OPENBLAS_NUM_THREADS=1",
		// So that both runs skip the same tests for want of memory.
		"NPY_AVAILABLE_MEM=2 GB",
		// Where the tests find numpy-config.
		fmt.Sprintf("PATH=%s:%s", filepath.Dir(harness.Python(t)), os.Getenv("PATH")),
	}
	if only != nil {
		names, err := json.Marshal(only)
		file := filepath.Join(t.TempDir(), "only.json")
		if err == nil {
			err = os.WriteFile(file, names, 0o600)
		}
		if err != nil {
			t.Error(err)
			return r
		}
		env = append(env, "ONLY="+file)
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
