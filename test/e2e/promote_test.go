package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
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

def system_calls_wait(user_mode_only=0):
    fd = ctypes.CDLL(None).syscall({"x86_64": 323, "aarch64": 282}[platform.machine()], os.O_CLOEXEC | user_mode_only)
    if fd >= 0:
        os.close(fd)
    return fd >= 0

remote.serve()
`, harness.Options{Configs: promote(how)})
			shared := harness.Eval[bool](t, run.Remote, "system_calls_wait()") && how != "never"
			closed(t, run.View(t, "a"))
			run.Remote.Exec(t, "os.waitpid(os.fork() or os._exit(0), 0); a[:] = 7")
			if e := search(t, run, "a", 1).Entries[0]; (e.Route == contract.RouteSharedHeap) != shared || (e.Reason == contract.ReasonFrozen) == shared {
				t.Errorf("the list says %q %q of what is shared: %v", e.Route, e.Reason, shared)
			}
			_, err := run.Session.View(t.Context(), "a", hostplugin.NoCopy())
			remedy := !shared && harness.Eval[bool](t, run.Remote, "system_calls_wait(1)") // 1: UFFD_USER_MODE_ONLY
			if e, ok := errors.AsType[*core.Error](err); (err == nil) != shared || ok && strings.Contains(e.Remedy, `promote = "always"`) != remedy {
				t.Errorf("without a copy: %v; want shared: %v, with the remedy: %v", err, shared, remedy)
			}
			after := run.View(t, "a")
			if first(t, after) != 7 || after.Live() != shared || (after.Reason() == contract.ReasonFrozen) == shared {
				t.Errorf("after a fork: %v of %v, live: %v, want shared: %v", after, first(t, after), after.Live(), shared)
			}
			closed(t, after)
		})
	}
}

// TestHostIsKilledDuringPromotion: its program ends like any other, and leaves nothing behind.
func TestHostIsKilledDuringPromotion(t *testing.T) {
	for range kills() {
		killHost(t, `
import os, numpy as np
frame = np.zeros(1 << 23)
while True:
    os.waitpid(os.fork() or os._exit(0), 0)
    frame += 1
`, time.Duration(rand.Int64N(int64(300*time.Millisecond)))+1, 0)
	}
}

// TestPromotionNobodyWaitsFor: a program whose array is being moved when its host gives up goes on with it, and loses
// nothing. The next look is at shared memory.
func TestPromotionNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import os, numpy as np, remote\na = np.zeros(1 << 24)\nremote.serve()\n", harness.Options{Configs: promoting})
	src := source(t, run, "a")
	view := viewOf(t, src)
	const rounds = 8
	gaveUp := 0
	for round := 1; round <= rounds; round++ {
		run.Remote.Exec(t, "os.waitpid(os.fork() or os._exit(0), 0); a += 1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*3*time.Millisecond)
		next, _, err := src.Refresh(ctx, view)
		cancel()
		switch {
		case err == nil:
			view = next
		case errors.Is(err, context.DeadlineExceeded):
			gaveUp++
		default:
			t.Fatal(err)
		}
		run.Remote.Exec(t, fmt.Sprintf("assert a.min() == a.max() == %d", round))
	}
	if gaveUp == 0 {
		t.Error("the host has never given up")
	}
	next, _, err := src.Refresh(t.Context(), view)
	if err != nil || next.Route() != contract.RouteSharedHeap || !next.Live() || first(t, next) != rounds {
		t.Fatalf("%v, route %v (%v), live: %v, %v", next, next.Route(), next.Reason(), next.Live(), err)
	}
	closed(t, next)
	run.NoLeases(t)
}
