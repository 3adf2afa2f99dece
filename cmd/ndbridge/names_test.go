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
	local := file(t, dir, "local.py", `
import sys
import threading
if len(sys.argv) > 1:
    threading.Event().wait()
import numpy as np

def main():
    weights = np.zeros(3)

main()
`)
	for _, what := range []string{"ls", "view"} {
		command(t, what, "--script", local, "--python", python(t), "--patience", "1m").
			want(t, statusOK, "", "local has no arrays in global variables, and has published none; variables of functions are gone with them: "+
				"look while it still runs, with less --patience, or publish them with ndbridge.publish\n")
		command(t, what, "--script", local, "--python", python(t), "--patience", "10ms", "--", "wait").
			want(t, statusOK, "", "local has no arrays yet: it still runs, and --patience says how long to wait; variables of functions are "+
				"listed while they run on the main thread\n")
	}
}

// TestArraysOfFunctions: what a function has that runs is shown and listed, and who leaves the function out learns of it.
func TestArraysOfFunctions(t *testing.T) {
	t.Parallel()
	local := file(t, t.TempDir(), "local.py", `
import threading
import numpy as np

def main():
    weights = np.arange(3.0)
    threading.Event().wait()

main()
`)
	command(t, "view", "--script", local, "--python", python(t), "--patience", "0", "main().weights").want(t, statusOK, "main().weights", "")
	for patience := time.Second; ; patience *= 2 { // until main runs
		if r := command(t, "ls", "--script", local, "--python", python(t), "--patience", patience.String()); r.stdout != "" {
			r.want(t, statusOK, "main().weights  numpy  float64  3  24 bytes", "")
			break
		}
		if patience > time.Minute {
			t.Fatal("nothing is listed")
		}
	}
	r := command(t, "view", "--script", local, "--python", python(t), "--patience", "0", "--timeout", "15s", "weights")
	r.want(t, statusFailed, "", "remedy: did you mean \"main().weights\"?\n")
}

// TestImportsTakeLong: a program that imports modules for longer than the user's patience is looked at when it has its arrays, and
// what imports modules has none.
func TestImportsTakeLong(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file(t, folder, "slow.py", "import time\nimport numpy as np\n\ndef wait(weights):\n    time.sleep(3)\n\nwait(np.arange(3.0))\n")
	script := file(t, folder, "prog.py", "import threading\nimport slow\nx = slow.np.arange(5)\nthreading.Event().wait()\n")
	r := command(t, "ls", "--script", script, "--python", python(t), "--patience", "2s")
	r.want(t, statusOK, "x  numpy  int64  5  40 bytes", "")
	r = command(t, "ls", "--script", script, "--python", python(t), "--patience", "50ms")
	if strings.Contains(r.stdout, "frames_removed") {
		t.Errorf("listed of a program that imports: %q", r.stdout)
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
	r.want(t, statusFailed, "", `level=WARN msg="still waiting for an array" program=forever array=fram cause="the program has no global variable, has published nothing, and runs no function with a variable, of that name; looked among the global variables of __main__`)
	r.want(t, statusFailed, "", `remedy="did you mean \"frame\"?"`)
	r.want(t, statusFailed, "", "ndbridge: view forever/fram: context deadline exceeded: the program still runs and has no array of that name after 15s\n  remedy: did you mean \"frame\"?\n")
	if n := strings.Count(r.stderr, "still waiting"); n != 1 {
		t.Errorf("said %d times in %v:\n%s", n, time.Since(began), r.stderr)
	}
}
