package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// closing closes what is not the program's own to close, opens files that get the same numbers, and goes on.
const closing = `
import os, sys, time, numpy as np, ndbridge
a = np.full(1 << 16, 7.0)
ndbridge.publish("a", a)

def pollers():
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + fd) == "anon_inode:[eventpoll]": yield int(fd)
        except OSError: pass

while not os.path.exists(sys.argv[1]): time.sleep(.01)
{{CLOSE}}
files = [open("%s.%d" % (sys.argv[1], i), "w+b") for i in range(64)]
a[:] = 8
end = time.monotonic() + 1
while time.monotonic() < end:
    {{PUBLISH}}
print("files:", sum(os.fstat(f.fileno()).st_size for f in files), flush=True)
sys.exit(7)
`

// TestProgramClosesDescriptorsOfOthers: the host learns why the program is gone, and the program runs to its end,
// while the plugin touches none of its files.
func TestProgramClosesDescriptorsOfOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ statement, want string }{
		"all":        {"os.closerange(3, 10000)", "the program closed descriptors that it had not opened"},
		"most":       {"os.closerange(5, 10000)", "the program closed descriptors that it had not opened"},
		// So that Go ends, but not in the middle of a call.
		"of epoll":   {"for fd in list(pollers()): os.close(fd)", "the plugin failed"},
		"one by one": {"for fd in range(3, 1000):\n    try: os.close(fd)\n    except OSError: pass", "the program closed descriptors"},
	} {
		for _, heap := range []string{"", " without the heap"} {
			t.Run(name+heap, func(t *testing.T) {
				t.Parallel()
				flag := filepath.Join(t.TempDir(), "go")
				publish := "ndbridge.publish('a', a)"
				if name == "of epoll" {
					publish = "time.sleep(.01)"
				}
				script := strings.NewReplacer("{{CLOSE}}", tt.statement, "{{PUBLISH}}", publish).Replace(closing)
				run := harness.Start(t, script, harness.Options{
					Args:    []string{flag},
					Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].SharedHeap = new(heap == "") }},
				})
				standing := run.View(t, "a")
				if err := os.WriteFile(flag, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				for gone := false; !gone; {
					if view, err := run.Session.View(t.Context(), "a"); err == nil {
						view.Close()
					} else if !errors.Is(err, core.ErrUnavailable) {
						t.Errorf("a view while the session ends: %v", err)
					}
					select {
					case <-run.Done():
						gone = true
					default:
					}
				}
				if err := run.Err(); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the session's end: %v, want %q", err, tt.want)
				}
				if status, err := run.ExitStatus(t.Context()); status != 7 || err != nil {
					t.Errorf("status %d, %v", status, err)
				}
				if !run.Log.Contains("files: 0") {
					t.Error("somebody has written into the program's files")
				}
				if x, err := core.At[float64](standing, 0); err != nil || x != 8 && heap == "" {
					t.Errorf("the standing view has %v, %v", x, err)
				}
			})
		}
	}
}
