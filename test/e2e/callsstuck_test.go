package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestStuckFunctionEndsTheProgram: with on_stuck = "end" a program ends when a function does not, whether it holds Python's lock or not.
func TestStuckFunctionEndsTheProgram(t *testing.T) {
	t.Parallel()
	for name, function := range map[string]string{
		"in C": "time.sleep(60)", "with Python's lock": "ctypes.PyDLL(None).sleep(60)", "whatever is raised": "insist()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, `
import ctypes, time, numpy as np, remote
begun = []
def insist():
    while True:
        try: time.sleep(0.01)
        except BaseException: pass
def stuck(): begun.append(1); `+function+`
def sleeps(n): begun.append(1); time.sleep(n)
def spin():
    while True: pass
def make(): return np.full(1 << 15, 7.0)
remote.start()
try: time.sleep(60)
except KeyboardInterrupt: print("interrupted", flush=True)
`, harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) {
				c.Programs[0].Workers, c.Programs[0].OnStuck, c.Programs[0].StuckTimeout = 3, "end", time.Second
			}}})
			kept := call(t, fn(t, run, "make"))
			for _, ends := range []*hostplugin.Future{ // in time
				cancelled(t, run, "spin"), cancelled(t, run, "sleeps", 0.3),
			} {
				if _, err := ends.Wait(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was interrupted") {
					t.Errorf("a function that ends in time: %v", err)
				}
			}
			other := fn(t, run, "sleeps").Go(t.Context(), 60)
			stuck := cancelled(t, run, "stuck")
			_, err := stuck.Wait(t.Context())
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the program was ended") {
				t.Errorf("the call that was stuck: %v", err)
			}
			if _, err := other.Wait(t.Context()); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "stuck still ran 1s") {
				t.Errorf("another call: %v", err)
			}
			<-run.Done()
			if err := run.Err(); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "stuck still ran 1s") {
				t.Errorf("Err = %v", err)
			}
			if x := slice[float64](t, kept.View())[5]; x != 7 {
				t.Errorf("the result of before shows %v", x)
			}
			if _, _, err := run.ExitStatus(t.Context()); err != nil {
				t.Error(err)
			}
			if name == "in C" && !strings.Contains(run.Log.Text(), "interrupted") {
				t.Error("the script was not interrupted")
			}
		})
	}
}

// cancelled begins a call whose context ends after 200 ms.
func cancelled(t *testing.T, run *harness.Run, name string, args ...any) *hostplugin.Future {
	t.Helper()
	f := fn(t, run, name)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return f.Go(ctx, args...)
}
