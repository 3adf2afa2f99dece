package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// TestWatchTellsOfARoundThatIsInterrupted interrupts a watch as soon as it has raised an alarm, of the first of many arrays.
func TestWatchTellsOfARoundThatIsInterrupted(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "many.py", "import time\nimport numpy as np\nstep, all = 0, [np.zeros(3) for _ in range(1000)]\nall[0][1] = np.nan\nwhile True:\n    step += 1\n    time.sleep(0.01)\n")
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	status := run(ctx, []string{"watch", "--script", script, "--python", python(t), "--json", "--step", "step", "--alarm", "nan", "--webhook", server.URL, "all"}, &stdout, &stderr)
	http.DefaultClient.CloseIdleConnections()
	if n := strings.Count(stdout.String(), `"alarm":"nan"`); status != statusInterrupted || n != 1 {
		t.Errorf("status %d, and %d alarms in\n%s%s", status, n, stdout.String(), stderr.String())
	}
}

// TestWatchWaitsForTheStep has a program that is busy, while its array is summed up, for longer than a step is waited for that has no name.
func TestWatchWaitsForTheStep(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "busy.py", "import ctypes, time\nimport numpy as np\nstep, x = 0, np.zeros(1 << 24)\nwhile True:\n    step += 1\n    time.sleep(0.005)\n    ctypes.PyDLL(None).usleep(1_500_000)\n")
	r := command(t, "watch", "--script", script, "--python", python(t), "--budget", "100", "--exact", "--json", "--step", "step", "--rounds", "3", "x")
	known := 0
	for _, object := range r.objects(t) {
		if object["step"] != nil {
			known++
		}
	}
	if r.status != statusOK || known != 3 {
		t.Errorf("status %d, and %d steps in\n%s%s", r.status, known, r.stdout, r.stderr)
	}
}

// TestWatchAlarmsAreOfAllNames raises an alarm for a name under which its array is not listed.
func TestWatchAlarmsAreOfAllNames(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "names.py", "import time\nimport numpy as np\nclass Model: pass\nmodel = Model()\nmodel.part = Model()\nmodel.part.weight = np.full(3, np.nan)\nall = [model.part.weight]\ntime.sleep(60)\n")
	command(t, "watch", "--script", script, "--python", python(t), "--interval", "50ms", "--alarm", "model*: nan", "--exit").
		want(t, statusAlarm, "model.part.weight: model*: nan: 3 of 3 elements\n", "")
}

// TestPostsManyAlarms posts three hundred alarms at once to a webhook that takes few at a time.
func TestPostsManyAlarms(t *testing.T) {
	t.Parallel()
	var now, posted atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer now.Add(-1)
		if now.Add(1) > postsAtOnce {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		time.Sleep(time.Millisecond)
		posted.Add(1)
	}))
	defer server.Close()
	const alarms = 300
	var stderr bytes.Buffer
	p := newPosts(newEnviron(io.Discard, &stderr))
	for range alarms {
		p.post(t.Context(), server.URL, "", watch.Event{})
	}
	p.end()
	http.DefaultClient.CloseIdleConnections()
	if n := posted.Load(); n != alarms {
		t.Errorf("%d of %d were posted\n%s", n, alarms, stderr.String())
	}
}

// TestPostsSayWhatTheEndWaitsFor has a server take long after the end.
func TestPostsSayWhatTheEndWaitsFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(patienceForProgress + 3*progressInterval) }))
	defer server.Close()
	var stderr bytes.Buffer
	env := newEnviron(io.Discard, &stderr)
	env.stderr.tty = true
	p := newPosts(env)
	p.post(t.Context(), server.URL, "", watch.Event{})
	p.end()
	http.DefaultClient.CloseIdleConnections()
	if !strings.Contains(stderr.String(), "posting alarms, ") {
		t.Errorf("it said %q", stderr.String())
	}
}

// TestWatchTellsWhatAFailedScriptHasLeft has a script raise, or be killed, with a NaN that came after the last look. It goes on after the first one.
func TestWatchTellsWhatAFailedScriptHasLeft(t *testing.T) {
	t.Parallel()
	for step, told := range map[string]string{"np.zeros(1 << 16)[::1 << 16]": " at step 2, not at step 1", "0": ", not at step 1"} {
		for _, end := range []string{"raise ValueError('a loss of NaN')", "os.kill(os.getpid(), 9)"} {
			seen := filepath.Join(t.TempDir(), "seen")
			script := file(t, t.TempDir(), "fails.py", "import os, time\nimport numpy as np\nx, step = np.zeros(1 << 16), "+step+"\nstep += 1\n"+
				"while not os.path.exists("+strconv.Quote(seen)+"): time.sleep(0.01)\nx[3] = np.nan\nstep += 1\n"+end+"\n")
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if err := os.WriteFile(seen, nil, 0o600); err != nil {
					t.Error(err)
				}
			}))
			r := command(t, "watch", "--script", script, "--python", python(t), "--interval", "1s", "--alarm", "zero>0.9", "--alarm", "nan", "--step", "step", "--webhook", server.URL, "x")
			server.Close()
			if !strings.Contains(r.stdout, "alarm: x: nan: 1 of 65536 elements"+told+"\n") || r.status != statusFailed {
				t.Errorf("status %d\n%s%s", r.status, r.stdout, r.stderr)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
