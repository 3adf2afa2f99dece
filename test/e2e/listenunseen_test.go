package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestListeningIsNotSeen: a program that listens finds no thread in Python's lists, and no descriptor taken but that of the socket. With the
// heap it is not warned when it forks, before and after a host has come.
func TestListeningIsNotSeen(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		for _, heap := range []bool{true, false} {
			run := harness.RunAlone(t, `
import _thread, ndbridge, os, remote, sys, threading, warnings
warnings.simplefilter("error")
path = ndbridge.listen()
print(path, flush=True)
x = bytearray(1 << 20)
def gaps(): # numbers that neither a file has nor the next file gets
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]
    there = {int(n) for n in os.listdir("/proc/self/fd")}
    for n in opened: os.close(n)
    return len(set(range(opened[-1])) - there)
def threads():
    return [threading.active_count(), len(sys._current_frames())]
def fork():
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
before = threads()
fork() if `+map[bool]string{true: "True", false: "sys.version_info < (3, 12)"}[heap]+` else None
remote.serve()
`, harness.RunningOptions{Python: python, Heap: heap})
			if n := harness.Eval[int](t, run.Remote, "gaps()"); n != 0 {
				t.Errorf("heap %v: %d descriptors are taken that nobody has", heap, n)
			}
			if heap && !harness.Eval[bool](t, run.Remote, "before == threads() == [1, 1] and _thread._count() == 0") {
				t.Errorf("threads: %v", harness.Eval[[]int](t, run.Remote, "threads()"))
			}
			host := harness.NewHost(t)
			s := run.Attach(t, host)
			s.View(t, "x")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if heap {
				run.Remote.Exec(t, "fork()")
			}
		}
	})
}
