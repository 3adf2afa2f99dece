package main

import (
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// TestBench holds what is said of an interpreter that has numpy alone, to people and to programs.
func TestBench(t *testing.T) {
	t.Parallel()
	r := command(t, "bench", "--python", python(t), "--rounds", "1")
	r.want(t, statusOK, "refresh p50", "")
	r.want(t, statusOK, "64 MiB", "")
	r = command(t, "bench", "--python", python(t), "--rounds", "1", "--json")
	r.want(t, statusOK, `{"way":"ndbridge","framework":"numpy","bytes":4096,"p50_ns":`, "")
	seen := map[any]int{}
	for _, object := range r.objects(t) {
		seen[object["way"]]++
		p50, _ := object["p50_ns"].(float64)
		p99, _ := object["p99_ns"].(float64)
		if p50 <= 0 || p99 < p50 {
			t.Errorf("a line makes no sense: %v", object)
		}
	}
	if len(seen) != 3 || seen["ndbridge"] != 3 || seen["__dlpack__"] != 3 || seen["pickle over a pipe"] != 3 {
		t.Errorf("ways and how often: %v", seen)
	}
}

// TestBenchWithoutFrameworks holds that it is said why nothing is measured.
func TestBenchWithoutFrameworks(t *testing.T) {
	t.Parallel()
	bare := bootstraptest.WriteProgram(t, "python3", "#!/bin/sh\nexec "+python(t)+" -S \"$@\"\n")
	command(t, "bench", "--python", bare).want(t, statusFailed, "", "has none of the frameworks that are measured: ModuleNotFoundError: ")
	command(t, "bench", "--python", "/nowhere/python").want(t, statusFailed, "", "/nowhere/python does not exist")
	command(t, "bench", "--python", "/bin/true").want(t, statusFailed, "", "/bin/true is not a Python interpreter that works: it exited with status 0")
}

// TestBenchMisused holds that what makes no sense is said.
func TestBenchMisused(t *testing.T) {
	t.Parallel()
	command(t, "bench", "numpy").want(t, statusUsage, "", "bench takes no arguments")
	command(t, "bench", "--rounds", "0").want(t, statusUsage, "", "--rounds must be positive")
}
