package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// closing closes what is not the program's own to close, opens files that could get the same numbers, and goes on.
const closing = `
import os, sys, time, numpy as np, ndbridge
a = np.full(1 << 16, 7.0)
ndbridge.publish("a", a)
def wait_for(name):
    while not os.path.exists(sys.argv[1] + name): time.sleep(.01)
wait_for("close")
{{CLOSE}}
files = [open("%s.%d" % (sys.argv[1], i), "w+b") for i in range(64)]
a[:] = 8
ndbridge.publish("b", a)
if os.fork() == 0: # a child may close what it likes
    own = os.eventfd(0) if hasattr(os, "eventfd") else os.dup(0)
    os.close(own)
    os._exit(5)
print("child:", os.WEXITSTATUS(os.wait()[1]), flush=True)
wait_for("end")
print("files:", sum(os.fstat(f.fileno()).st_size for f in files), flush=True)
sys.exit(7)
`

var closings = map[string]string{
	"all":        "os.closerange(3, 10000)",
	"from 5 on":  "os.closerange(5, 10000)",
	"one by one": "for fd in range(3, 1000):\n    try: os.close(fd)\n    except OSError: pass",
}

// overwriting puts files at the plugin's numbers, which would get what the plugin writes.
const overwriting = `import errno
fd = os.open("/dev/null", os.O_WRONLY)
for to in [int(n) for n in os.listdir("/proc/self/fd") if 2 < int(n) != fd]:
    link = os.readlink("/proc/self/fd/%d" % to) if os.path.exists("/proc/self/fd/%d" % to) else ""
    if not link.startswith(("socket:", "anon_inode:", "/memfd:")): continue
    for inheritable in (True, False):
        try: os.dup2(fd, to, inheritable)
        except OSError as e: assert e.errno == errno.EBUSY
os.close(fd)`

func startClosing(t *testing.T, statement string, heap bool) (run *harness.Run, flag func(name string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flag")
	run = harness.Start(t, strings.ReplaceAll(closing, "{{CLOSE}}", statement), harness.Options{
		Args:    []string{path},
		Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].SharedHeap.Off = !heap }},
	})
	return run, func(name string) {
		if err := os.WriteFile(path+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProgramClosesDescriptorsOfOthers: where the shared heap is, the plugin's descriptors do not exist for the program.
func TestProgramClosesDescriptorsOfOthers(t *testing.T) {
	t.Parallel()
	statements := maps.Clone(closings)
	statements["overwriting"] = overwriting
	for name, statement := range statements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, flag := startClosing(t, statement, true)
			standing := run.View(t, "a")
			flag("close")
			later := run.View(t, "b")
			for what, view := range map[string]*core.View{"standing": standing, "later": later} {
				if x, err := core.At[float64](view, 0); err != nil || x != 8 {
					t.Errorf("the %s view has %v, %v", what, x, err)
				}
			}
			flag("end")
			if status, signal, err := run.ExitStatus(t.Context()); status != 7 || signal != 0 || err != nil {
				t.Errorf("status %d, signal %v, %v\n%s", status, signal, err, run.Log.Text())
			}
			for _, said := range []string{"files: 0", "child: 5"} {
				harness.Eventually(t, harness.StartBound, "the program has said "+said, func() bool { return run.Log.Contains(said) })
			}
		})
	}
}

// TestProgramClosesDescriptorsWithoutTheHeap: the program cannot go on, and both it and the host say why.
func TestProgramClosesDescriptorsWithoutTheHeap(t *testing.T) {
	t.Parallel()
	for name, statement := range closings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, flag := startClosing(t, statement, false)
			standing := run.View(t, "a")
			flag("close")
			<-run.Done()
			const want = "the program closed descriptors of the plugin"
			if err := run.Err(); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("the session's end: %v, want %q", err, want)
			}
			if status, _, err := run.ExitStatus(t.Context()); status == 0 || err != nil {
				t.Errorf("status %d, %v", status, err)
			}
			if x, err := core.At[float64](standing, 0); err != nil || x != 7 {
				t.Errorf("the standing view has %v, %v", x, err)
			}
		})
	}
}
