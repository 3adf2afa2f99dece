package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// promoting has arrays that lived through a fork shared again, whatever the rights of the tests.
var promoting = promote("always")

func promote(how string) []func(*hostplugin.Config) {
	return []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].SharedHeap.Promote = how }}
}

// TestPromoteSettings holds that an array that lived through a fork is copied if the user says so, and by default if the
// kernel does not let the program's system calls wait.
func TestPromoteSettings(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"never": "never", "the default": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, `
import ctypes, os, platform, numpy as np, remote
a = np.full(1 << 17, 1.0)

def system_calls_wait():
    fd = ctypes.CDLL(None).syscall({"x86_64": 323, "aarch64": 282}[platform.machine()], os.O_CLOEXEC)
    if fd >= 0:
        os.close(fd)
    return fd >= 0

remote.serve()
`, harness.Options{Configs: promote(how)})
			shared := harness.Eval[bool](t, run.Remote, "system_calls_wait()") && how != "never"
			closed(t, run.View(t, "a"))
			run.Remote.Exec(t, "os.waitpid(os.fork() or os._exit(0), 0); a[:] = 7")
			after := run.View(t, "a")
			if first(t, after) != 7 || after.Live() != shared || (after.Reason() == contract.ReasonFrozen) == shared {
				t.Errorf("after a fork: %v of %v, live: %v, want shared: %v", after, first(t, after), after.Live(), shared)
			}
			closed(t, after)
		})
	}
}
