package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachToABusyProgram: the main thread of a program that keeps Python's lock for ever, whoever wants it, steps aside for a host.
func TestAttachToABusyProgram(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.8", "3.13", "3.14"} { // which look at once
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			came := filepath.Join(t.TempDir(), "came")
			run := harness.RunAlone(t, `
import ndbridge, os, sys
path = ndbridge.listen()
def hook(event, args):
    if event == "compile" and args[1] == "<ndbridge>":
        os.close(os.open(os.environ["CAME"], os.O_CREAT))
sys.addaudithook(hook)
sys.setswitchinterval(1e6)
print(path, flush=True)
while True:
    pass
`, harness.RunningOptions{Python: pythonOf(t, version), Heap: true, Env: []string{"CAME=" + came}})
			host := harness.NewHost(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				if s, err := host.Attach(ctx, hostplugin.Socket(run.Socket)); err == nil {
					_ = s.Close()
				}
			}()
			harness.Eventually(t, harness.StartBound, "the host is let in", func() bool {
				_, err := os.Stat(came)
				return err == nil
			})
		})
	}
}
