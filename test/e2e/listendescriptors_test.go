package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestListeningLeavesDescriptors: without the shared heap, a program that listens and its children find free the numbers that would be free,
// and what they open at the number of a socket that they have closed, as one that they have not opened, stays as they have made it.
func TestListeningLeavesDescriptors(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.8", "3.14"} {
		python := pythonOf(t, version)
		run := harness.RunAlone(t, `
import ctypes, fcntl, gc, ndbridge, os, remote, signal, socket, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
results, result = os.pipe()
os.dup2(result, 200)
low = os.open("/dev/null", os.O_RDONLY)
path = ndbridge.listen("family")
os.close(low)
print(path, flush=True)
folder = os.path.dirname(path)
def listening(name): return name + "." + str(os.getpid())
def bound():
    while not ndbridge._listener.bound: time.sleep(0.01)
def threads_end(tasks="/proc/self/task"):
    while len(os.listdir(tasks)) > 1: time.sleep(0.01)
def forget(): os.closerange(3, 64) # also the socket
def lowest(want):
    got = os.open("/dev/null", os.O_RDONLY)
    assert got == want, "%d was free, and %d is given" % (want, got)
def number(): lowest(low)
def zero():
    os.close(0)
    fork(lambda: lowest(0))
def closed():
    forget()
    fork(lambda: lowest(3))
def blocks():
    libc = ctypes.PyDLL(None) # which keeps Python's lock: the thread that listens has not run yet
    listener = ndbridge._Listener("x", folder + "/x", False)
    libc.close(listener.socket.fileno())
    ends = (ctypes.c_int * 2)()
    libc.pipe(ends)
    listener.start()
    time.sleep(0.05)
    for end in ends: assert not fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK, "a pipe does not block"
def own():
    bound()
    before = ndbridge._listener.socket.fileno()
    forget()
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind(folder + "/mine")
        mine.listen(1)
        os.dup2(mine.fileno(), before)
        client, host = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(folder + "/mine")
        try: host.connect(folder + "/" + listening("family")) # which wakes the thread
        except ConnectionRefusedError: pass # it has ended
        threads_end()
        mine.settimeout(0)
        mine.accept()[0].close()
def again(wait):
    wait()
    forget()
    one, other = socket.socketpair()
    ndbridge.listen("other")
    gc.collect()
    one.send(b"x")
    assert other.recv(1) == b"x"
def removed():
    bound()
    os.unlink(folder + "/" + listening("family"))
    ndbridge.listen("other")
def end():
    forget()
    threads_end()
    os.open("/dev/null", os.O_RDONLY)
    warnings.simplefilter("always", ResourceWarning) # Python says what it closes
    sys.exit()
def interrupted():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    class Interrupted: # as a handler of the program's interrupts it
        SIG_BLOCK, SIG_SETMASK = signal.SIG_BLOCK, signal.SIG_SETMASK
        def pthread_sigmask(how, which):
            blocked = signal.pthread_sigmask(how, which)
            if which: raise OSError("interrupted")
            return blocked
    ndbridge._Listener.signal = Interrupted
    def left(): assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before, "signals stay blocked"
    fork(left)
def away():
    tasks = os.open("/proc/self/task", os.O_RDONLY)
    if os.geteuid() == 0:
        os.chroot(folder)
        threads_end(tasks) # one cannot listen there
def fork(f, *args):
    pid = os.fork()
    if pid:
        status = os.waitpid(pid, 0)[1]
        if status: os.write(200, ("%s: status %d\n" % (f.__name__, status)).encode())
        return
    try:
        f(*args)
    except Exception as e:
        os.write(200, ("%s: %s: %s\n" % (f.__name__, type(e).__name__, e)).encode())
    os._exit(0)
for f in number, zero, closed, blocks, own, removed, end, interrupted, away: fork(f)
for wait in bound, lambda: None: fork(again, wait)
os.write(200, b"over\n")
text = b""
while not text.endswith(b"over\n"): text += os.read(results, 1000)
wrong = text.decode().splitlines()[:-1]
remote.serve()
`, harness.RunningOptions{Python: python})
		if wrong := harness.Eval[[]string](t, run.Remote, "wrong"); len(wrong) > 0 {
			t.Error(strings.Join(wrong, "\n"))
		}
		if said := run.Stderr(); said != "" {
			t.Error(said)
		}
	}
}

// TestForkWhileHostComes: a child that the program forks while a host is being let in holds nothing of the host's, which learns of the
// program's end although the child goes on.
func TestForkWhileHostComes(t *testing.T) {
	t.Parallel()
	for name, heap := range map[string]bool{"alone": false, "heap": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import ndbridge, os, signal, threading, time
mine = bytearray(8)
path = ndbridge.listen()
close, main, coming, forked = os.close, os.getpid(), threading.Event(), threading.Event()
def slow(descriptor):
    if os.getpid() == main and not forked.is_set():
        coming.set()
        forked.wait()
    close(descriptor)
print(path, flush=True)
os.close = slow # which the thread that lets a host in calls when the plugin is loaded
coming.wait()
if os.fork() == 0: time.sleep(600)
forked.set()
time.sleep(600)
`, harness.RunningOptions{Heap: heap})
			s := run.Attach(t, harness.NewHost(t))
			s.View(t, "mine")
			if err := syscall.Kill(run.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, harness.StartBound, "the host learns of the end", func() bool {
				select {
				case <-s.Done():
					return true
				default:
					return false
				}
			})
		})
	}
}

// TestChildOfAThreadEnds: a child that another thread than the main one forks has that thread alone, and ends with it.
func TestChildOfAThreadEnds(t *testing.T) {
	t.Parallel()
	for name, heap := range map[string]bool{"alone": false, "heap": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import ndbridge, os, remote, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
print(ndbridge.listen(), flush=True)
status = []
def fork(again): # which the child returns from, as does its own
    pid = os.fork()
    if pid: status.append(os.waitpid(pid, 0)[1])
    elif again: fork(False)
thread = threading.Thread(target=fork, args=(True,))
thread.start()
thread.join()
remote.serve()
`, harness.RunningOptions{Heap: heap})
			if status := harness.Eval[[]int](t, run.Remote, "status"); len(status) != 1 || status[0] != 0 {
				t.Errorf("the child ends with %v", status)
			}
		})
	}
}
