package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachRests: what the plugin has and does not need while it has no host it gives back: threads, those of Python's that are its own, and the
// pages of its file. Hosts that come and go leave no objects to Python's garbage collector, which is off. It rests after each host, also one that has come while it rested, as if nothing were: the program publishes meanwhile, and
// forks without a warning although more threads have come and gone than the heap has places for.
func TestAttachRests(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ctypes, gc, ndbridge, numpy as np, os, remote, time, warnings
gc.disable()
print(ndbridge.listen(), flush=True)
x = np.full(1 << 17, 1.0)
def double(a): return a * 2
`+threadStates+`def threads():
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    for _ in range(1100):
        assert libc.ndheap_create_thread(ctypes.byref(thread), None, libc.getpid, None) == 0
        libc.pthread_join(thread, None)
def objects(): return len(gc.get_objects())
def fork():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pid = os.fork()
        if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    return [str(w.message) for w in said]
remote.serve()
`, harness.RunningOptions{Python: pythonOf(t, "3.14"), Heap: true, Env: []string{"GODEBUG=gctrace=1"}})
	host := harness.NewHost(t)
	threads, states := harness.Threads(t, run.PID), harness.Eval[int](t, run.Remote, "states()")
	visit := func(also func(s *harness.Run)) {
		s := run.Attach(t, host)
		if v := s.View(t, "x"); slice[float64](t, v)[7] != 1 {
			t.Errorf("x[7] = %v", slice[float64](t, v)[7])
		}
		if v := s.View(t, "step", hostplugin.NoWait()); slice[int64](t, v)[0] != 5 {
			t.Errorf("step = %v", slice[int64](t, v)[0])
		}
		also(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	rests := func() {
		t.Helper()
		// Go's first thread and its monitor, those that make threads and open files, and one that runs what there is to run; and one more if the
		// first one is none of these, and one that Go has just made.
		const left, clean = 6, 1 << 20
		var now string
		t.Cleanup(func() { t.Log(now) })
		harness.Eventually(t, harness.StartBound, "the plugin rests", func() bool {
			n, pages, s := harness.Threads(t, run.PID), cleanPages(t, run.PID), harness.Eval[int](t, run.Remote, "states()")
			now = fmt.Sprintf("%d threads, before %d; %d bytes of the plugin's file; %d states of threads, before %d", n, threads, pages, s, states)
			return n <= threads+left && pages < clean && s <= states
		})
	}
	run.Remote.Exec(t, "ndbridge.publish('step', 5)")
	visit(func(s *harness.Run) {
		f, err := s.Func(t.Context(), "double")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.Call(t.Context(), 21); err != nil {
			t.Error(err)
		} else if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	rests()
	run.Remote.Exec(t, "ndbridge.publish('step', 4); ndbridge.publish('step', 5); fork()")
	const visits = 20
	before := harness.Eval[int](t, run.Remote, "objects()")
	for range visits {
		visit(func(*harness.Run) {})
	}
	if now := harness.Eval[int](t, run.Remote, "objects()"); now > before+5*visits {
		t.Errorf("%d objects, before %d hosts %d", now, visits, before)
	}
	rests()
	// A program may take longer than the plugin's patience until it has let a host in.
	run.Remote.Exec(t, "close = os.close; os.close = lambda fd: [close(fd), time.sleep(1.5)]")
	visit(func(s *harness.Run) {
		before := collections(run.Stderr())
		harness.Eventually(t, harness.StartBound, "the plugin collects its garbage", func() bool {
			for range 20 {
				for _, err := range s.Arrays(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			return collections(run.Stderr()) > before
		})
	})
	run.Remote.Exec(t, "os.close = close; threads()")
	if said := harness.Eval[[]string](t, run.Remote, "fork()"); len(said) > 0 {
		t.Errorf("a fork says %q", said)
	}
}

// collections counts what Go says of collections of its own accord.
func collections(stderr string) (n int) {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "gc ") && !strings.Contains(line, "(forced)") {
			n++
		}
	}
	return n
}

// cleanPages is how much of the plugin's file a process has in memory, besides what was written there.
func cleanPages(t *testing.T, pid int) (size int) {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inside := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		var n int
		switch {
		case strings.Contains(line, "-") && !strings.Contains(line, "kB"):
			inside = strings.HasSuffix(line, ".so") && strings.Contains(line, "/ndbridge-")
		case !inside:
		case scan(line, "Rss: %d kB", &n):
			size += n << 10
		case scan(line, "Anonymous: %d kB", &n):
			size -= n << 10
		}
	}
	return size
}

func scan(line, format string, n *int) bool {
	found, err := fmt.Sscanf(line, format, n)
	return err == nil && found == 1
}
