package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
