package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNoArrays: where there is nothing to show, the user learns what cannot be seen.
func TestNoArrays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const functions = "variables of functions are not visible: publish them with ndbridge.publish\n"
	local := file(t, dir, "local.py", `
import sys
import threading
import numpy as np

def main():
    weights = np.zeros(3)
    if len(sys.argv) > 1:
        threading.Event().wait()

main()
`)
	for _, what := range []string{"ls", "view"} {
		command(t, what, "--script", local, "--python", python(t), "--patience", "1m").
			want(t, statusOK, "", "local has no arrays in global variables, and has published none; "+functions)
		command(t, what, "--script", local, "--python", python(t), "--patience", "10ms", "--", "wait").
			want(t, statusOK, "", "local has no arrays yet: it still runs, and --patience says how long to wait; "+functions)
	}
}

// TestTimeoutBeforePatience: a program that just goes on is no program that does not answer.
func TestTimeoutBeforePatience(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ls"}, {"view", "frame"}} {
		r := on(t, args[0], "forever.py", append(args[1:], "--timeout", "10s", "--", filepath.Join(t.TempDir(), "pid"))...)
		r.want(t, statusFailed, "", "forever: context deadline exceeded: the program still runs after 10s\n  remedy: raise --timeout, or give less --patience, ")
	}
}

// TestNameThatDoesNotCome: who waits for a wrong name learns of the right one while he waits, and in the end.
func TestNameThatDoesNotCome(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := on(t, "view", "forever.py", "--patience", "0", "--timeout", "15s", "fram", "--", filepath.Join(t.TempDir(), "pid"))
	r.want(t, statusFailed, "", `level=WARN msg="still waiting for an array" program=forever array=fram cause="the program has no global variable, and has published nothing, of that name" remedy="did you mean \"frame\"?"`)
	r.want(t, statusFailed, "", "ndbridge: view forever/fram: context deadline exceeded: the program still runs and has no array of that name after 15s\n  remedy: did you mean \"frame\"?\n")
	if n := strings.Count(r.stderr, "still waiting"); n != 1 {
		t.Errorf("said %d times in %v:\n%s", n, time.Since(began), r.stderr)
	}
}
