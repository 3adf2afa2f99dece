package e2e

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// surroundings is a program that has arrays of each route and then loses something that looks need.
const surroundings = `
import os, socket, numpy as np, ndbridge, remote
heap, second, small = np.full(1 << 17, 1.0), np.full(1 << 17, 1.0), np.full(100, 1.0)
packed = [np.frombuffer(np.full(1 << 17, 1.0).tobytes()) for _ in range(10)]
file = os.memfd_create("mapped")
os.truncate(file, 1 << 20)
mapped = np.memmap(open(file, "r+b", closefd=False), "f8", "r+")
mapped[:] = 1
ndbridge.publish("offered", np.full(1 << 17, 1.0))
taken = []

def take_descriptors(): # all that there are, and again what others give back
    try:
        while True:
            taken.append(os.open("/", os.O_RDONLY))
    except OSError:
        pass

def listens(fd): # as the plugin does, at a path
    try:
        return socket.socket(fileno=os.dup(fd)).getsockname() not in ("", b"")
    except OSError:
        return False

remote.serve()
`

// TestLooksWithoutProc: a program that has left /proc behind is looked at as before, and ends as before.
func TestLooksWithoutProc(t *testing.T) { startedAndAttached(t, looksWithoutProc) }

func looksWithoutProc(t *testing.T, attached bool) {
	run := harness.Start(t, surroundings, harness.Options{Python: bootstraptest.MayChroot(t, harness.Python(t)), Configs: promoting, Attached: attached})
	empty := t.TempDir()
	run.Remote.Exec(t, fmt.Sprintf("os.chroot(%q); os.chdir('/'); assert not os.path.exists('/proc')", empty))
	looks(t, run)
	v := run.View(t, "second", hostplugin.Writable())
	slice[float64](t, v)[0] = 2
	if !harness.Eval[bool](t, run.Remote, "bool(second[0] == 2)") {
		t.Error("a writable view does not write")
	}
	closeView(t, v)
	if !attached && !harness.Eval[bool](t, run.Remote, "any(map(listens, range(1024)))") {
		t.Error("the plugin has no socket, so this shows nothing")
	}
	run.Remote.Exec(t, "pid = os.fork() or os._exit(any(map(listens, range(1024)))); assert os.waitpid(pid, 0)[1] == 0")
	if v := run.View(t, "heap"); v.Route() != contract.RouteSharedHeap || !v.Live() {
		t.Errorf("after a fork: %v", v)
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
}

// looks takes views by each route that needs a descriptor or /proc.
func looks(t *testing.T, run *harness.Run) {
	t.Helper()
	for name, route := range map[string]core.Route{
		"heap": contract.RouteSharedHeap, "offered": contract.RouteSharedHeap, "small": contract.RouteStaged, "packed[0]": contract.RouteStaged,
	} {
		v := run.View(t, name)
		if sees(t, v, 1); v.Route() != route {
			t.Errorf("%s: %v, want %v", name, v, route)
		}
		closeView(t, v)
	}
	v := run.View(t, "mapped")
	sees(t, v, 1)
	closeView(t, v)
}

// TestLooksWithoutDescriptors: a program that has all descriptors in use is looked at as before, since the plugin's are
// its own.
func TestLooksWithoutDescriptors(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"the usual limit": "1024", "a high one": "4096"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ("+limit+", "+limit+"))\n"+surroundings, harness.Options{Configs: promote("never")}) // else looks share what they are to copy
			run.Remote.Exec(t, "take_descriptors()")
			looks(t, run)
			looks(t, run)
			var views []*core.View
			for i := range 10 { // each has a file of its own
				views = append(views, run.View(t, fmt.Sprintf("packed[%d]", i)))
			}
			run.Remote.Exec(t, "late = np.full(1 << 17, 1.0)") // there is no descriptor for a file of its own
			for _, v := range views {
				sees(t, v, 1)
				closeView(t, v)
			}
			looks(t, run)
			v := run.View(t, "late")
			sees(t, v, 1)
			closeView(t, v)
			run.Remote.Exec(t, "for fd in taken: os.close(fd)")
		})
	}
}
