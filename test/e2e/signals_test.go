package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const signalFunctions = `
import array, os, signal, threading

FAULTS = {signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS}
CATCHABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP} - FAULTS

def status(process, key):
    with open("/proc/%s/status" % process) as lines:
        field = next(line for line in lines if line.startswith(key + ":"))
    number = int(field.split(":")[1], 16)
    return {n for n in signal.valid_signals() if number >> n - 1 & 1}

def leaks():
    """For each thread that is not the program's: the signals that it could take from the program."""
    own = {t.native_id for t in threading.enumerate()}
    return {t: sorted(CATCHABLE - status("self/task/" + t, "SigBlk")) for t in os.listdir("/proc/self/task") if int(t) not in own}

def dispositions():
    """What the process ignores and catches of what does not come from a fault."""
    return [sorted(status("self", key) - FAULTS) for key in ("SigIgn", "SigCgt")]
`

// TestSignalsStayTheProgramsOwn holds each thread of the plugin to block all signals that may be meant for the program, however
// many threads there are.
func TestSignalsStayTheProgramsOwn(t *testing.T) {
	t.Parallel()
	for version, python := range bootstraptest.Interpreters(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			alone, err := exec.CommandContext(t.Context(), python, "-c", signalFunctions+"print(dispositions())").Output()
			if err != nil {
				t.Fatal(err)
			}
			run := harness.Start(t, signalFunctions+`
import remote
arrays = [array.array("d", [0.0]) * 100000 for _ in range(64)]
remote.serve()
`, harness.Options{Python: python})
			var users sync.WaitGroup
			for user := range 16 {
				users.Go(func() {
					for i := range 20 {
						view, err := run.Session.View(t.Context(), "arrays["+itoa((7*user+i)%64)+"]")
						if err != nil {
							t.Error(err)
							return
						}
						view.Close()
					}
				})
			}
			users.Wait()
			leaks := harness.Eval[map[string][]int](t, run.Remote, "leaks()")
			if len(leaks) < 5 {
				t.Errorf("%d threads of the plugin, want more", len(leaks))
			}
			for thread, signals := range leaks {
				if len(signals) > 0 {
					t.Errorf("thread %s does not block %v", thread, signals)
				}
			}
			if own := harness.Eval[[]int](t, run.Remote, `sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))`); len(own) > 0 {
				t.Errorf("the program's own thread blocks %v", own)
			}
			if got := harness.Eval[string](t, run.Remote, "str(dispositions())"); got != strings.TrimSpace(string(alone)) {
				t.Errorf("the process ignores and catches %s; Python alone %s", got, alone)
			}
			// The kernel keeps an ignored signal only where nobody could take it, so these must wait.
			got := harness.Eval[[]int](t, run.Remote, `[signal.pthread_sigmask(signal.SIG_BLOCK, CATCHABLE),
				[(os.kill(os.getpid(), s), int(signal.sigwait([s])))[1] for s in sorted(CATCHABLE)]][1]`)
			if want := harness.Eval[[]int](t, run.Remote, "sorted(map(int, CATCHABLE))"); !slices.Equal(got, want) {
				t.Errorf("waited for %v, want %v", got, want)
			}
		})
	}
}

// TestHandlersBesideGo interrupts programs at a high rate while they are in the plugin. The handlers of
// Python before 3.10 would run on the stacks of goroutines, and write over memory of Go's.
func TestHandlersBesideGo(t *testing.T) {
	t.Parallel()
	pythons := bootstraptest.Interpreters(t)
	for _, version := range []string{"3.8", "3.9", "3.11"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, signalFunctions+`
import sys, time, ndbridge

taken = {signal.SIGALRM: 0, signal.SIGPROF: 0}
def take(number, frame): taken[number] += 1
for number in taken: signal.signal(number, take)
signal.setitimer(signal.ITIMER_REAL, .0001, .0001)
signal.setitimer(signal.ITIMER_PROF, .001, .001)
class Asked:
    """Tells what is blocked when the plugin asks for its memory."""
    @property
    def __array_interface__(self):
        blocked.update(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return {"version": 3, "data": (array.buffer_info()[0], True), "shape": (2000,), "typestr": "<f8"}
blocked, array, asked = set(), array.array("d", [0.0]) * 2000, Asked()
end = time.monotonic() + 3
while time.monotonic() < end:
    ndbridge.publish("array", array)
    ndbridge.publish("asked", asked)
for timer in signal.ITIMER_REAL, signal.ITIMER_PROF: signal.setitimer(timer, 0)
sys.exit("blocked: %s" % blocked if blocked else 0 if min(taken.values()) else "no signals: %s" % taken)
`, harness.Options{Python: pythons[version]})
			var users sync.WaitGroup
			ended := make(chan struct{})
			users.Go(func() {
				for {
					if view, err := run.Session.View(t.Context(), "array", hostplugin.NoWait()); err == nil {
						view.Close()
					}
					select {
					case <-ended:
						return
					default:
					}
				}
			})
			err := run.Wait(t.Context())
			close(ended)
			users.Wait()
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFaultsStayTheProgramsOwn has programs fault: they end as with Python alone.
func TestFaultsStayTheProgramsOwn(t *testing.T) {
	t.Parallel()
	const load, fault = "import ctypes, faulthandler, threading\nlibc = ctypes.CDLL(None)\n", "ctypes.string_at(0)\n"
	tests := map[string]struct {
		script string
		status int
		stderr string
	}{
		"no handler":   {load + fault, 128 + int(syscall.SIGSEGV), ""},
		"in a thread":  {load + "threading.Thread(target=ctypes.string_at, args=(0,)).start()", 128 + int(syscall.SIGSEGV), ""},
		"faulthandler": {load + "faulthandler.enable()\n" + fault, 128 + int(syscall.SIGSEGV), "Fatal Python error: Segmentation fault"},
		"own handler":  {load + "libc.signal(11, libc._exit)\n" + fault, int(syscall.SIGSEGV), ""},
		"in a call":    {load + "def call(): ctypes.string_at(0)\nimport remote\nremote.serve()", 128 + int(syscall.SIGSEGV), ""},
		"in a call, faulthandler": {
			load + "faulthandler.enable()\ndef call(): ctypes.string_at(0)\nimport remote\nremote.serve()", 128 + int(syscall.SIGSEGV), "Fatal Python error: Segmentation fault",
		},
		"sent":           {load + "import os\nos.kill(os.getpid(), 11)", 128 + int(syscall.SIGSEGV), ""},
		"sent in a call": {load + "import os\ndef call(): os.kill(os.getpid(), 11)\nimport remote\nremote.serve()", 128 + int(syscall.SIGSEGV), ""},
		"abort":          {load + "libc.abort()", 128 + int(syscall.SIGABRT), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, tt.script, harness.Options{})
			if strings.Contains(name, "in a call") {
				fails(t, fn(t, run, "call"), core.ErrUnavailable, "signal 11 (SIGSEGV)")
			}
			if status, _, err := run.ExitStatus(t.Context()); status != tt.status {
				t.Errorf("status %d (%v), want %d", status, err, tt.status)
			}
			harness.Eventually(t, harness.StartBound, fmt.Sprintf("%q is in the log", tt.stderr), func() bool { return run.Log.Contains(tt.stderr) })
			if run.Log.Contains("goroutine") {
				t.Error("Go's runtime has something to say")
			}
		})
	}
}
