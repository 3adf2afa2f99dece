package bootstrap_test

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// A forked child that runs to the end of the script is a Python process like any other.
func TestForkedChildEndsAsWithPythonAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"end":          "print('child')",
		"exit":         "raise SystemExit(3)",
		"exit text":    "raise SystemExit('gone')",
		"raise":        "1/0",
		"thread":       "import threading, time; threading.Thread(target=lambda: (time.sleep(.05), print('thread'))).start()",
		"fork again":   "print('child', flush=True); os.fork() and os.wait()",
		"exit handler": "import atexit; atexit.register(print, 'atexit')",
		"interrupt":    "raise KeyboardInterrupt",
	}
	each(t, func(t *testing.T, python string) {
		for name, line := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := script(t,
					"import os, sys",
					"pid = os.fork()",
					"if pid == 0:",
					"    "+line,
					"else:",
					"    print('status', os.waitpid(pid, 0)[1])",
				)
				want := plain(t, python, "", path)
				got, _ := hosted(t, bootstraptest.Program{
					Python: python, Target: path,
					// Without it Python warns, since 3.12, of any fork in a process with threads, such as the plugin's.
					Env: []string{"LD_PRELOAD=" + heap},
				})
				if got.status != want.status {
					t.Errorf("status %d, want %d", got.status, want.status)
				}
				diff(t, "stdout", got.stdout, want.stdout)
				diff(t, "stderr", got.stderr, want.stderr)
			})
		}
	})
}

func TestForkedChildHasNoHost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: script(t,
			"import multiprocessing, ndbridge",
			"def work(q):",
			"    for f in lambda: ndbridge.publish('a', 1), lambda: ndbridge.unpublish('a'):",
			"        try: f()",
			"        except RuntimeError as e: q.put(str(e))",
			"context = multiprocessing.get_context('fork')",
			"q = context.SimpleQueue()",
			"p = context.Process(target=work, args=(q,))",
			"p.start(); print(q.get()); print(q.get()); p.join()",
		)})
		if n := strings.Count(got.stdout, "a forked process has no host"); n != 2 || got.stderr != "" {
			t.Errorf("%+v", got)
		}
	})
}

// A child that outlives the program must not look like it: the ends of the host's pipes that a host
// waits for have to close with the program.
func TestForkedChildHoldsNothingOfTheHosts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := start(t, bootstraptest.Program{Python: python, Target: script(t,
			"import os, sys, time",
			"pid = os.fork()",
			"if pid == 0:",
			"    os.setsid()",
			"    own = open(sys.argv[0])", // what the child opens must not be closed for it
			"    os.close(1); os.close(2)",
			"    time.sleep(60)",
			"print('child', pid)",
			"time.sleep(.1)",
			"os._exit(9)",
		)})
		proc.Await(t, "\n")
		child, err := strconv.Atoi(strings.Fields(proc.Stdout())[1])
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(child, syscall.SIGKILL) //nolint:errcheck // it may be gone
		if state := proc.Wait(t); state.ExitCode() != 9 {
			t.Errorf("%v\nstderr: %s", state, proc.Stderr())
		}
		for m := range proc.Messages { // until the socket's end
			t.Errorf("message %v", m)
		}
		if err := proc.Handshake.SetReadDeadline(time.Now().Add(bootstraptest.Patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, proc.Handshake); n != 0 || err != nil {
			t.Errorf("handshake: %d bytes, %v", n, err)
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(child)); err != nil {
			t.Errorf("the child was to live on: %v", err)
		}
	})
}

func TestOtherProgramsInheritNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		path := script(t,
			"import subprocess, sys",
			"code = 'import os; print(sorted(int(f) for f in os.listdir(\"/proc/self/fd\")))'",
			"subprocess.call([sys.executable, '-c', code], close_fds=False)",
		)
		want := plain(t, python, "", path)
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: path})
		diff(t, "descriptors", got.stdout, want.stdout)
	})
}
