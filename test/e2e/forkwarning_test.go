package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestForkWarnsOfTheProgramsThreadsAlone forks, while the host looks, in each way that Python warns of in a process with
// threads. The plugin's threads are no reason to warn, the program's own are, as without ndbridge.
func TestForkWarnsOfTheProgramsThreadsAlone(t *testing.T) {
	t.Parallel()
	eachPython(t, forkWarns)
}

func forkWarns(t *testing.T, python string) {
	t.Helper()
	run := harness.Start(t, `
import multiprocessing, os, subprocess, sys, threading, time, warnings
import remote
warnings.simplefilter("error", DeprecationWarning)
data = bytearray(1 << 20)
go_on = threading.Event()

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def forkpty():
    pid, fd = os.forkpty()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(fd)

def process():
    p = multiprocessing.get_context("fork").Process(target=int)
    p.start()
    p.join()

def child():
    """Fork in a child that has a thread of its own, and has none of the plugin's."""
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=go_on.wait, daemon=True).start()
        os._exit(3 if warned(fork) else 4)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3

def warned(f):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        f()
    return len([w for w in said if "multi-threaded" in str(w.message)])

def count(times=1):
    return [sum(warned(f) for _ in range(times)) for f in (fork, forkpty, process)]

def counts():
    with open("/proc/self/stat") as f:
        return int(f.read().rpartition(")")[2].split()[17]) == len(os.listdir("/proc/self/task")) > 1

def truth():
    return any(counts() for _ in range(100)) # a thread of the plugin's may come or go between the two

warns = sys.version_info >= (3, 12)
own = lambda: threading.Thread(target=go_on.wait, daemon=True).start()
remote.serve()
`, harness.Options{Python: python})
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	looking.Go(func() {
		for ctx.Err() == nil {
			view, err := run.Session.View(ctx, "data")
			if err == nil {
				err = view.Close()
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("a look: %v", err)
				return
			}
		}
	})
	warns, times := harness.Eval[bool](t, run.Remote, "warns"), 2
	if warns { // each fork may meet a look
		times = 20
	}
	count := func() []int { return harness.Eval[[]int](t, run.Remote, "count("+itoa(times)+")") }
	if got := count(); got[0]+got[1]+got[2] != 0 {
		t.Errorf("without threads of its own the program was warned %v times", got)
	}
	if !harness.Eval[bool](t, run.Remote, "truth()") {
		t.Error("the program itself does not read the truth")
	}
	if warns && !harness.Eval[bool](t, run.Remote, "child()") {
		t.Error("a child with a thread of its own was not warned")
	}
	run.Remote.Exec(t, "fork()") // raises what would be a warning
	run.Remote.Exec(t, "own()")
	want := 0
	if warns {
		want = times
	}
	for i, n := range count() {
		if n != want {
			t.Errorf("with a thread of its own the program was warned %d times in way %d, want %d", n, i, want)
		}
	}
}
