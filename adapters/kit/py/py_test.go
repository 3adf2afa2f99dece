package py_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// library is the shared library of the tests that run inside an interpreter.
var library string

func TestMain(m *testing.M) { os.Exit(bootstraptest.RunWithLibrary(m, &library)) }

// inside runs Python code that has the library as lib, and gives what it printed.
func inside(t *testing.T, python string, lines ...string) string {
	t.Helper()
	code := "import ctypes, os\nlib = ctypes.CDLL(os.environ['PYTESTS'])\n" + strings.Join(lines, "\n")
	cmd := exec.CommandContext(t.Context(), python, "-X", "faulthandler", "-c", code)
	cmd.Env = append(os.Environ(), "PYTESTS="+library)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", python, err, out)
	}
	return string(out)
}

func each(t *testing.T, f func(t *testing.T, python string)) {
	t.Helper()
	for version, python := range bootstraptest.Interpreters(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f(t, python)
		})
	}
}

func TestInsideInterpreter(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		out := inside(t, python, "lib.ndTest()")
		const enough = 25
		if n := strings.Count(out, "--- PASS: "); n < enough || strings.Contains(out, "--- FAIL") {
			t.Errorf("%d tests passed, want at least %d\n%s", n, enough, out)
		}
	})
}

// The interpreter may end while many threads want to enter it, or are inside, or one is stuck.
func TestInterpreterEnds(t *testing.T) {
	t.Parallel()
	// stuck has a call inside, and shuts the interpreter after it has waited for the call for some milliseconds.
	stuck := func(ms, call string) []string {
		return []string{
			"import random, threading, time",
			"inside = threading.Event()",
			"def f(): inside.set(); " + call,
			"lib.ndHammer(32); ctypes.PyDLL(lib._name).ndCall(ctypes.py_object(f))",
			"inside.wait(); shut = lib.ndShut(0, " + ms + ")",
		}
	}
	tests := map[string]struct {
		lines []string
		want  string
	}{
		"idle": {[]string{"print(lib.ndHammer(0), lib.ndShut(0, 10000))"}, "0 0\n"},
		"crowded": {[]string{
			"import time",
			"lib.ndHammer(32); time.sleep(0.05)",
			"print(lib.ndShut(0, 10000))",
		}, "0\n"},
		"with exit handlers": {[]string{
			"import atexit, threading, time",
			"threading.Thread(target=lambda: [i for i in range(10**6)]).start()",
			"atexit.register(lambda: print(sum(range(10**6))))",
			"lib.ndHammer(32); time.sleep(0.01)",
			"print(lib.ndShut(0, 10000))",
		}, "0\n499999500000\n"},
		// CPython 3.10 would free what they look at.
		"with threads that wait for the lock": {[]string{
			"import threading, time",
			"hold = lambda: (time.sleep(.02), ctypes.PyDLL(None).usleep(200000))",
			"lib.ndHammer(32)",
			"threading.Thread(target=hold, daemon=True).start()",
			"print(lib.ndShut(100, 1))",
		}, "0\n"},
		"with a call that sleeps":   {append(stuck("100", "time.sleep(3600)"), "print(shut)"), "1\n"},
		"with a call that returns":  {stuck("1", "time.sleep(random.random() / 10)"), ""},
		"with a call that computes": {append(stuck("20000", "any(map(lambda _: False, iter(int, 1)))"), "print(shut)"), "0\n"},
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for range 5 {
					if got := inside(t, python, tt.lines...); got != tt.want {
						t.Errorf("got %q, want %q", got, tt.want)
					}
				}
			})
		}
	})
}
