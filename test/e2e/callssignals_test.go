package e2e

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsBlockNoSignals: what a function starts blocks the signals that the program's own threads block, and no others. So
// a child process that it starts can be ended as any.
func TestCallsBlockNoSignals(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		run := harness.Start(t, `
import remote, signal, subprocess, sys, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

def blocked(): return sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, []))

def in_thread():
    found = []
    thread = threading.Thread(target=lambda: found.extend(blocked()))
    thread.start()
    thread.join()
    return found

async def in_coroutine(): return blocked()

def in_generator(): yield blocked()

def terminated():
    child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.terminate()
    return child.wait(30)

remote.serve()
`, harness.Options{Python: python})
		for _, name := range []string{"blocked", "in_thread", "in_coroutine"} {
			var got []int
			if err := call(t, fn(t, run, name)).Decode(&got); err != nil || !slices.Equal(got, []int{12}) {
				t.Errorf("%s: signals %v are blocked, want SIGUSR2 (12) alone; %v", name, got, err)
			}
		}
		for result, err := range fn(t, run, "in_generator").Stream(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			if err := result.Decode(&got); err != nil || !slices.Equal(got, []int{12}) {
				t.Errorf("in a generator signals %v are blocked, want SIGUSR2 (12) alone; %v", got, err)
			}
		}
		if got := value(t, fn(t, run, "terminated")); got != int64(-15) {
			t.Errorf("a child process that was told to end gave %v, want -15", got)
		}
	})
}
