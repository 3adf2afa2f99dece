package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// slowly is a script whose array changes, until somebody interrupts it.
const slowly = `
import time
import numpy as np
x = np.zeros(100_000)
words = np.array(["a", "b"])
step = np.zeros(1, np.int64)
for turn in range(600):
    step[0] = turn
    x += 1
    time.sleep(0.05)
`

// TestWatchNamesTheBrokenWeight trains in torch, with one NaN in one of 300 parameters.
func TestWatchNamesTheBrokenWeight(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_ALL")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_ALL is not set; run make test")
	}
	args := []string{"watch", "--script", "testdata/train.py", "--python", python, "--step", "step", "--interval", "100ms", "--budget", "50", "--alarm", "nan", "--exit"}
	for i := range 300 {
		args = append(args, fmt.Sprintf("params[%d]", i))
	}
	r := command(t, args...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	last := lines[len(lines)-1]
	if r.status != statusAlarm || !strings.HasPrefix(last, "params[217]: nan: 1 of 16 elements at step 12") {
		t.Errorf("status %d, and last %q\n%s", r.status, last, r.stderr)
	}
}

func TestWatchLines(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "slowly.py", slowly)
	base := []string{"watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50"}
	r := command(t, append(base, "--rounds", "3", "--step", "step[0]", "x")...)
	r.want(t, statusOK, "  x  mean ", "")
	if n := strings.Count(r.stdout, "\n"); n < 3 || !regexp.MustCompile(`  step [0-9]+  x  mean `).MatchString(r.stdout) {
		t.Errorf("%d lines:\n%s", n, r.stdout)
	}
	command(t, append(base, "--rounds", "1")...).want(t, statusOK, "  step  mean ", "")                              // all arrays
	command(t, append(base, "--rounds", "1", "st*")...).want(t, statusOK, "  step  mean ", "")                       // a pattern
	command(t, append(base, "--rounds", "2", "--step", "turn", "x")...).want(t, statusOK, "step ", "")               // a number of Python's
	command(t, append(base, "--rounds", "1", "--step", "turns", "x")...).want(t, statusOK, "  x  mean ", "--step: ") // it says that there is none
	command(t, append(base, "--rounds", "2", "*", "x")...).want(t, statusOK, "  x  mean ", "words")                  // what has no figures
	command(t, append(base, "--rounds", "2", "words", "x")...).want(t, statusFailed, "  x  mean ", "words")          // and was named
	r = command(t, append(base, "--alarm", "*x: max>20", "--exit", "x")...)
	r.want(t, statusAlarm, "x: *x: max>20: max is ", "")
	if m := regexp.MustCompile(`max is (\d+)[ \n]`).FindStringSubmatch(r.stdout); m == nil || len(m[1]) > 3 {
		t.Errorf("not one of 21 to 600:\n%s", r.stdout)
	}
}

// TestWatchFindsWhatComesLater watches a dict that grows.
func TestWatchFindsWhatComesLater(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "growing.py", "import time\nimport numpy as np\nparts, early = {}, np.zeros(2)\nfor i in range(600):\n    parts[str(i)] = np.full(3, float(i))\n    if i == 10: late = parts[\"9\"]\n    time.sleep(0.05)\n")
	base := []string{"watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50", "--exit"}
	command(t, append(base, "--alarm", `parts["9"]: max>=9`, `parts["*"]`)...).want(t, statusAlarm, `parts["9"]: max>=9: max is 9`, "")
	command(t, append(base, "--json", "--alarm", `parts["9"]: max>=9`, `parts["*"]`)...).want(t, statusAlarm, `"alarm":"parts[\"9\"]: max>=9"`, "")
	command(t, append(base, "--alarm", "early: stale>1s", "early", "none")...).want(t, statusAlarm, "", "growing/none: not found: ")
	command(t, append(base, "--alarm", "late: max>=9", "early", "*")...).want(t, statusAlarm, "late: max>=9: max is 9", "")
	command(t, "watch", "--script", script, "--python", python(t), "--interval", "50ms", "--rounds", "1", "early", "lat*").want(t, statusOK, "  late  mean 9  ", "")
	command(t, append(base, "--alarm", "late: max>=9")...).want(t, statusAlarm, "late: max>=9: max is 9", "")
}

// TestWatchTakesAllBelowAName watches names that are no arrays, but lead to some: an object that comes later, a model of torch, and what a script
// has left that ended before the first look.
func TestWatchTakesAllBelowAName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	later := file(t, dir, "later.py", "import time\nimport numpy as np\nclass State: pass\nbest, alone, empty = None, np.ones(2), {'lr': 0.1}\nfor i in range(600):\n"+
		"    if i == 10:\n        best = State()\n        best.w, best.parts = np.zeros(3), [np.full(2, 3.0)]\n    if i == 30: best.parts.append(np.full(2, np.nan))\n    time.sleep(0.05)\n")
	base := []string{"watch", "--script", later, "--python", python(t), "--interval", "50ms", "--budget", "50"}
	r := command(t, append(base, "--alarm", "nan", "--exit", "best", "alone")...)
	r.want(t, statusAlarm, "  best.w  mean 0  ", "ndbridge: best is no array: watching those below it, as best.** does (2 now)\n")
	r.want(t, statusAlarm, "best.parts[1]: nan: 2 of 2 elements\n", "")
	command(t, append(base, "--rounds", "3", "empty", "alone")...).want(t, statusFailed, "  alone  mean 1  ", "dict is not an array; name an array")

	quick := file(t, dir, "quick.py", "import numpy as np\nx, state = np.ones(3), {'a': np.full(3, 2.0)}\n")
	command(t, "watch", "--script", quick, "--python", python(t), "--interval", "1h", "x", "state").want(t, statusOK, `  state["a"]  mean 2  std 0 `, "")

	all := os.Getenv("NDBRIDGE_TEST_PYTHON_ALL")
	if all == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_ALL is not set; run make test")
	}
	model := file(t, dir, "model.py", "import time, torch\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\n"+
		"with torch.no_grad(): model[0].bias[2] = torch.nan\ntime.sleep(60)\n")
	command(t, "watch", "--script", model, "--python", all, "--interval", "100ms", "--alarm", "nan", "--exit", "model").
		want(t, statusAlarm, "model[0].bias: nan: 1 of 4 elements", "as model.** does (2 now)")
	command(t, "watch", "--script", model, "--python", all, "--interval", "100ms", "--rounds", "1", "--json", "model/model").
		want(t, statusOK, `"name":"model/model[0].bias"`, "model/model is no array")
}

// TestWatchEndsThoughNobodyReads interrupts a watch whose lines nobody takes any more.
func TestWatchEndsThoughNobodyReads(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "slowly.py", slowly)
	short := file(t, t.TempDir(), "short.py", "import numpy as np\nx = np.ones(3)\n")
	for _, args := range [][]string{{script, "x"}, {short, "--interval", "1h", "x", "step"}} {
		read, written := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		status := make(chan int, 1)
		var stderr bytes.Buffer
		go func() {
			status <- run(ctx, append([]string{"watch", "--python", python(t), "--interval", "50ms", "--script"}, args...), written, &stderr)
		}()
		if _, err := read.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if got := <-status; got != statusInterrupted {
			t.Errorf("status %d\n%s", got, stderr.String())
		}
		_ = read.Close() // what is printed is over
	}
}

func TestWatchObjects(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "slowly.py", slowly)
	posted := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		_ = json.NewDecoder(r.Body).Decode(&body) // an empty text is the failure
		posted <- body.Text
	}))
	defer server.Close()
	r := command(t, "watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50", "--json", "--step", "step",
		"--alarm", "max>10", "--webhook", server.URL, "--metrics", ":0", "--rounds", "30", "x")
	http.DefaultClient.CloseIdleConnections()
	r.want(t, statusOK, "", "serving http://127.0.0.1:")
	looks, alarms := 0, 0
	for _, object := range r.objects(t) {
		switch {
		case object["alarm"] != nil:
			alarms++
			if object["alarm"] != "max>10" || object["name"] != "x" || object["step"] == nil {
				t.Errorf("%v", object)
			}
		case object["error"] == nil:
			looks++
			if object["dtype"] != "float64" || object["std"] == nil || object["summary"] == nil || object["time"] == nil {
				t.Errorf("%v", object)
			}
		}
	}
	if looks != 30 || alarms != 1 {
		t.Errorf("%d looks and %d alarms:\n%s", looks, alarms, r.stdout)
	}
	if text := <-posted; !strings.HasPrefix(text, "x: max>10: max is 1") {
		t.Errorf("posted %q", text)
	}
}

// TestWatchObjectsLeaveOutWhatHasPassed watches the variables of a function that comes and goes, and one that was named.
func TestWatchObjectsLeaveOutWhatHasPassed(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "passing.py", "import time\nimport numpy as np\nn, huge = np.zeros(1), np.full(1000, 1e308)\ndef f():\n    local = np.full(5, 2.0)\n    time.sleep(0.3)\n"+
		"for i in range(600):\n    f()\n    n += 1\n    time.sleep(0.3)\n")
	base := []string{"watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50", "--json", "--alarm", "n: max>=6", "--exit"}
	for _, names := range [][]string{nil, {"n", "f().local"}} {
		seen, passed := 0, 0
		r := command(t, append(base, names...)...)
		for _, object := range r.objects(t) {
			switch {
			case object["name"] == "huge" && (object["norm"] != nil || object["error"] != nil):
				t.Errorf("%v", object)
			case object["name"] == "f().local" && object["error"] == nil:
				seen++
			case object["error"] != nil:
				passed++
			}
		}
		if r.status != statusAlarm || seen == 0 || (passed > 0) != (names != nil) {
			t.Errorf("%v: status %d, %d looks and %d errors\n%s%s", names, r.status, seen, passed, r.stdout, r.stderr)
		}
	}
}

// TestWatchAttaches looks at a program that runs already, and leaves it running.
func TestWatchAttaches(t *testing.T) { //nolint:paralleltest // it sets the environment
	_, socket := listening(t)
	r := command(t, "watch", "--attach", socket, "--interval", "50ms", "--rounds", "2", "x", "main().y")
	r.want(t, statusOK, "  main().y  mean ", "")
	r.want(t, statusOK, "  x  mean 1.5  std 0 ", "")
}

func TestWatchSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "short.py", "x = 1\n")
	base := []string{"watch", "--script", script, "--python", python(t)}
	quick := file(t, t.TempDir(), "quick.py", "import numpy as np\nx = np.ones(3)\n")
	// The script has ended before anybody asks it again for its arrays.
	command(t, "watch", "--script", quick, "--python", python(t), "--interval", "1h").want(t, statusOK, "  x  mean 1  std 0 ", "")
	command(t, "watch", "--script", quick, "--python", python(t), "x", "nothing.*").want(t, statusFailed, "", "nothing.*: no array has such a name")
	command(t, append(base, "nothing")...).want(t, statusFailed, "", "nothing")
	command(t, append(base, "--json", "nothing")...).want(t, statusFailed, `"name":"nothing"`, "")
	failing := file(t, t.TempDir(), "failing.py", "raise ValueError('no more')\n")
	command(t, "watch", "--script", failing, "--python", python(t), "x").want(t, statusFailed, "", "no more")
	for _, c := range [][]string{
		{"--alarm", "median>3", "x"},
		{"--exit", "x"},
		{"--webhook", "http://127.0.0.1", "x"},
		{"--webhook", "ftp://x", "--alarm", "nan", "x"},
		{"--interval", "0s", "x"},
		{"--budget", "0", "x"},
		{"--budget", "101", "x"},
		{"--rounds", "-1", "x"},
		{"--color", "red", "x"},
		{"--step", "no name", "x"},
	} {
		command(t, append(base, c...)...).want(t, statusUsage, "", c[0])
	}
	command(t, append(base, "--metrics", "0.0.0.0:0", "x")...).want(t, statusUsage, "", "other machines")
}

// TestWatchCountsNoLooksAtImports has a script import for longer than ten looks take.
func TestWatchCountsNoLooksAtImports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "slow.py", "import time\ntime.sleep(2)\n")
	script := file(t, dir, "imports.py", "import slow, time\nimport numpy as np\nx = np.ones(3)\ntime.sleep(60)\n")
	base := []string{"watch", "--script", script, "--python", python(t), "--interval", "100ms"}
	for _, name := range []string{"x", "x*"} {
		if r := command(t, append(base, "--rounds", "3", name)...); r.status != statusOK || r.stderr != "" {
			t.Errorf("%s: status %d\n%s", name, r.status, r.stderr)
		}
	}
	command(t, append(base, "--alarm", "stale>3s", "--exit", "x", "y")...).want(t, statusAlarm, "", "y: not found: ")
}

// TestWatchDrawsOnATerminal has a terminal show the figures, and leaves by a key.
func TestWatchDrawsOnATerminal(t *testing.T) {
	t.Parallel()
	for key, status := range map[string]int{"q": statusOK, "\x03": statusInterrupted} {
		t.Run(strconv.Quote(key), func(t *testing.T) {
			t.Parallel()
			drawsUntil(t, key, status)
		})
	}
}

// drawsUntil watches on a terminal until a key is pressed.
func drawsUntil(t *testing.T, key string, status int) {
	t.Helper()
	script := file(t, t.TempDir(), "slowly.py", "print('begun', flush=True)\n"+slowly)
	ours, theirs := terminal(t)
	cmd := process(t.Context(), "watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50", "--step", "step", "x")
	cmd.Stdin, cmd.Stdout = theirs, theirs
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	buf := make([]byte, 1<<12)
	for left := false; ; {
		n, err := ours.Read(buf)
		shown.Write(buf[:n])
		if err != nil { // the other end is closed
			break
		}
		if text := shown.String(); !left && strings.Contains(text, "float64 [100000]") && strings.Contains(text, "█") {
			left = true
			if _, err := ours.WriteString(key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != status {
		t.Errorf("%v, want status %d\n%s", err, status, stderr.String())
	}
	for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l", "1 array, every", "norm", "q: quit", "| begun"} {
		if !strings.Contains(shown.String()+stderr.String(), want) { // what was printed before it drew is on stderr
			t.Errorf("no %q among\n%q", want, shown.String())
		}
	}
}
