package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestListenLeavesThePrograms: a program that listens may set defaults for sockets, and replace and remove what all modules use. It is let
// alone, and says nothing of it when a host comes nor when it ends.
func TestListenLeavesThePrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		open          bool // hosts can come nevertheless
	}{
		"timeout": {"import socket; socket.setdefaulttimeout(0.01)", "import time; time.sleep(0.1)", true},
		"greenlets": {`
def no_thread(*arguments): raise RuntimeError("gevent and eventlet would begin a greenlet")
import _thread, time
_thread.start_new_thread = time.sleep = no_thread
del sys.modules["ndbridge"]
import ndbridge`, "", true},
		"imports": {"", "import builtins\ndef no(name, *a, **k): raise ImportError(name)\nbuiltins.__import__ = no", false},
		"modules": {"", "for m in [m for m in sys.modules if m not in ('sys', 'builtins', '__main__')]: del sys.modules[m]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import ndbridge, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
`+c.before+`
path = ndbridge.listen()
`+c.after+`
print(path, flush=True)
signal.sigwait([signal.SIGUSR1])
`, harness.RunningOptions{})
			for range 2 {
				s, err := harness.NewHost(t).Attach(t.Context(), hostplugin.Socket(run.Socket))
				if err == nil {
					err = s.Close()
				} else if !c.open && errors.Is(err, core.ErrUnavailable) && !strings.Contains(err.Error(), "within") { // it is told at once
					err = nil
				}
				if err != nil {
					t.Error(err)
				}
			}
			if err := syscall.Kill(run.PID, syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			if state := run.Wait(); !state.Success() || run.Stderr() != "" {
				t.Errorf("%v\n%s", state, run.Stderr())
			}
		})
	}
}

// noThreads is code after which its process can make no thread.
const noThreads = `
import ctypes, platform, struct
seccomp, clone = {"x86_64": (317, 56), "aarch64": (277, 220)}[platform.machine()]
clone3, again, allow, load, equal, give = 435, 0x5000b, 0x7fff0000, 0x20, 0x15, 0x06
filter = b"".join(struct.pack("HBBI", *i) for i in [
    (load, 0, 0, 0), (equal, 1, 0, clone), (equal, 0, 1, clone3), (give, 0, 0, again), (give, 0, 0, allow)])
libc, code = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(filter)
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filter) // 8, ctypes.addressof(code)))
assert libc.syscall(seccomp, 1, 1, program) == 0, ctypes.get_errno()  # for all threads`

// limited is code that leaves its process so many MiB of what a limit counts.
func limited(limit string, more int) string {
	field := map[string]string{"AS": "VmSize", "DATA": "VmData"}[limit]
	return fmt.Sprintf(`
import resource
has, = [int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("%s:")]
resource.setrlimit(resource.RLIMIT_%s, (has + (%d << 20),) * 2)`, field, limit, more)
}

// TestAttachIsRefused: where a program's Python does not run what lets a host in, or its limits leave the plugin no room, without which Go
// would end it, the host is told so at once, and the program keeps nothing of it.
func TestAttachIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, want string }{
		"audit": {`
def forbid(event, args):
    if event == "compile": raise RuntimeError(event)
sys.addaudithook(forbid)`, "audit hook"},
		"builtins": {"import builtins; del builtins.hasattr", "parts of Python"},
		"sockets":  {"sys.modules['_socket'] = None", "parts of Python"},
		"descriptors": {`
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 6,) * 2)`, "too few descriptors"},
		"threads":        {noThreads, "threads more"},
		"addresses":      {limited("AS", 600), "MiB of addresses more"}, // the plugin fits, and Go does not
		"private memory": {limited("DATA", 80), "MiB of private memory more"},
		"file sizes":     {"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16,) * 2)", "ulimit -f"},
		"mappings": {`
import ctypes
libc, most = ctypes.CDLL(None), int(open("/proc/sys/vm/max_map_count").read())
libc.mmap.restype, page = ctypes.c_void_p, os.sysconf("SC_PAGESIZE")
at = libc.mmap(None, ctypes.c_size_t(most * page), 0, 0x4022, -1, ctypes.c_long(0))
protect = lambda n, rights: libc.mprotect(ctypes.c_void_p(at + 2 * n * page), page, rights)
full = next(n for n in range(most) if protect(n, 1))
for n in range(full - 50, full): protect(n, 0)`, "mappings more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import ndbridge, os, signal, sys
path = ndbridge.listen()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
`+c.before+`
print(path, flush=True)
signal.sigwait([signal.SIGUSR1])
`, harness.RunningOptions{Heap: true})
			host, before := harness.NewHost(t), 0
			for n := range 4 {
				if n == 1 { // the plugin has been loaded, if it comes to that
					before = harness.Descriptors(t, run.PID)
				}
				if s, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket)); err == nil {
					t.Fatal(s.Close())
				} else if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("attach: %v", err)
				}
			}
			harness.Eventually(t, harness.StartBound, "the program holds nothing of the hosts", func() bool {
				return harness.Descriptors(t, run.PID) <= before
			})
		})
	}
}

// TestAttachAtTheEnd: a program that ends lets no host in any more, or one that has come just before, and ends as it would.
func TestAttachAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, python := range harness.Pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import atexit, ctypes, ndbridge, numpy as np, sys, time
x = np.full(1 << 17, 1.0)
atexit.register(time.sleep, 0.5)  # runs after what listen has registered
print(ndbridge.listen(), flush=True)
ctypes.PyDLL(None).usleep(300000)  # with Python's lock: the host has come, and is let in as the end begins, if at all
`, harness.RunningOptions{Python: python, Heap: true})
			s, err := harness.NewHost(t).Attach(t.Context(), hostplugin.Socket(run.Socket))
			if err == nil {
				err = s.Wait(t.Context())
			}
			if !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("attach: %v", err)
			}
			if state := run.Wait(); !state.Success() || run.Stderr() != "" {
				t.Errorf("%v\n%s", state, run.Stderr())
			}
		})
	}
}

// TestAttachKeepsTheNewest: what a program publishes, and takes back, while the first host comes is what that host finds.
func TestAttachKeepsTheNewest(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, numpy as np, remote, threading
class Slow:
    """Is asked for its array when the first host has come, and lets another thread publish meanwhile."""
    def __init__(self): self.array = np.full(1 << 17, 5.0)
    @property
    def __array_interface__(self):
        if not others:
            others.append(threading.Thread(target=other))
            others[0].start()
            others[0].join(0.5)
        return self.array.__array_interface__
def other():
    try:
        ndbridge.publish("step", np.full(1 << 17, 2.0))
        ndbridge.unpublish("gone")
    except BaseException as error:
        failed.append(repr(error))
failed, others = [], []
print(ndbridge.listen(), flush=True)
ndbridge.publish("step", np.full(1 << 17, 1.0))
ndbridge.publish("gone", np.full(1 << 17, 1.0))
ndbridge.publish("slow", Slow())
remote.serve()
`, harness.RunningOptions{Heap: true})
	s := run.Attach(t, harness.NewHost(t))
	run.Remote.Exec(t, "others[0].join()")
	if failed := harness.Eval[[]string](t, run.Remote, "failed"); len(failed) > 0 {
		t.Errorf("the program got %v", failed)
	}
	if got := slice[float64](t, s.View(t, "step"))[7]; got != 2 {
		t.Errorf("step is %v; what was published last is 2", got)
	}
	if _, err := s.Session.View(t.Context(), "gone", hostplugin.NoWait()); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("a name that was taken back: %v", err)
	}
}

// TestAttachLeavesSockets: a host that looks for a program which is about to listen, but does not yet, leaves its socket where it is.
func TestAttachLeavesSockets(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "ndbridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "ndbridge", "begins."+strconv.Itoa(os.Getpid()))
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.NewHost(t).Attach(t.Context(), hostplugin.Name("begins")); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("attach: %v", err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of a program that begins to listen: %v", err)
	}
}

// TestAttachHoldsItsOwnDescriptors: a program that opens files while the first host comes can close them, though it cannot close the plugin's.
func TestAttachHoldsItsOwnDescriptors(t *testing.T) {
	t.Parallel()
	for range 8 {
		run := harness.RunAlone(t, `
import ndbridge, numpy as np, os, remote
x = np.full(1 << 17, 1.0)
print(ndbridge.listen(), flush=True)
open_ones, failed = [], []
def close(fd):
    try: os.close(fd)
    except OSError as error: failed.append("%s: %s" % (os.readlink("/proc/self/fd/%d" % fd), error))
while not ndbridge.connected:
    open_ones += [os.open("/proc/self/stat", os.O_RDONLY), *os.pipe()]
    while len(open_ones) > 60: close(open_ones.pop(0))
while open_ones: close(open_ones.pop(0))
def close_all():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if fd > 2 and not os.readlink("/proc/self/fd/%d" % fd).startswith("socket"): os.close(fd)
        except OSError: pass
remote.serve()
`, harness.RunningOptions{Heap: true})
		s := run.Attach(t, harness.NewHost(t))
		if failed := harness.Eval[[]string](t, run.Remote, "failed"); len(failed) > 0 {
			t.Fatalf("the program cannot close %v", failed)
		}
		run.Remote.Exec(t, "close_all()")
		if got := slice[float64](t, s.View(t, "x"))[7]; got != 1 || s.Err() != nil {
			t.Errorf("x[7] = %v, %v", got, s.Err())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAttachWhileImporting: a host that comes while the program imports the module ndbridge waits for that.
func TestAttachWhileImporting(t *testing.T) {
	t.Parallel()
	directory, err := os.MkdirTemp("", "nda") //nolint:usetesting // a test's own folder may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	run := harness.RunAlone(t, `
import importlib.machinery, importlib.util, os, sys, time
class Slowly(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        print(os.path.join(os.environ["SOCKETS"], "importer.%d" % os.getpid()), flush=True)
        time.sleep(0.5)
        super().exec_module(module)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "ndbridge":
            at = importlib.machinery.PathFinder.find_spec(name)
            return importlib.util.spec_from_file_location(name, at.origin, loader=Slowly(name, at.origin))
sys.meta_path.insert(0, Finder())
import ndbridge
ndbridge.publish("number", 5)
import remote
remote.serve()
`, harness.RunningOptions{Heap: true, Env: []string{"NDBRIDGE_HEAP_LISTEN=" + directory, "SOCKETS=" + directory, "NDBRIDGE_HEAP_NAME=importer"}})
	s, err := harness.NewHost(t).Attach(t.Context(), hostplugin.Socket(run.Socket).Await())
	if err != nil {
		t.Fatal(err)
	}
	number, err := s.Source("number")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := number.Next(t.Context(), nil); err != nil || slice[int64](t, v)[0] != 5 {
		t.Errorf("what it publishes then: %v", err)
	}
}

// TestShareImports: the module ndbridge, which a host brings to a program that has not imported it, is what it is for all programs that listen,
// from the moment when the program asks it for something.
func TestShareImports(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		run := harness.RunAlone(t, `
import numpy as np, os, remote, sys, time
path = "%s/late.%d" % (os.environ["NDBRIDGE_HEAP_LISTEN"], os.getpid())
while not os.path.exists(path): time.sleep(0.01)
print(path, flush=True)
remote.serve()
`, harness.RunningOptions{Python: python, Heap: true, Env: []string{"NDBRIDGE_HEAP_LISTEN=" + dir, "NDBRIDGE_HEAP_NAME=late"}})
		host := harness.NewHost(t)
		s := run.Attach(t, host)
		run.Remote.Exec(t, `
import ndbridge, threading
missing, odd = [], []
def ask(name):
    if not hasattr(ndbridge, name): missing.append(name)
before = "listen" in vars(ndbridge)
asked = [threading.Thread(target=ask, args=[name]) for name in ndbridge.__all__ for _ in range(4)]
for a in asked: a.start()
for a in asked: a.join()
if hasattr(ndbridge, "nothing"): odd.append("nothing")
try: ndbridge.host.nothing
except AttributeError as error: said = str(error)
ndbridge.publish("late", np.full(1 << 17, 3.0))
child = os.fork()
if not child: os._exit(ndbridge.connected + 2 * (ndbridge.publish("late", 1.0) is not None))
status = os.waitpid(child, 0)[1]
`)
		for expression, want := range map[string]string{
			"before": "False", "missing": "[]", "odd": "[]", "ndbridge.connected": "True", "status": "0",
			"said": "the host has no function 'nothing': it has none",
		} {
			if got := harness.Eval[string](t, run.Remote, "str("+expression+")"); got != want {
				t.Errorf("%s is %s, want %s", expression, got, want)
			}
		}
		if got := slice[float64](t, s.View(t, "late"))[7]; got != 3 {
			t.Errorf("what was published is %v", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		harness.Eventually(t, harness.StartBound, "the program has no host any more", func() bool {
			return !harness.Eval[bool](t, run.Remote, "ndbridge.connected")
		})
	})
}
