package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestNoThreadIsLeftBehind: code of the program that runs in a look may ask on which thread it is, as logging does. The
// threading module makes an entry for it then, which nobody could ever join.
func TestNoThreadIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, handoff := range map[string]bool{"handoff": true, "gRPC": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, publishing+`
import logging, threading
seen = []
class Talking:
    @property
    def array(self):
        seen.append(threading.current_thread().name)
        logging.getLogger("quiet").debug("looked")
        return np.ones(1 << 14)
    @property
    def __array_interface__(self):
        seen.append(threading.current_thread().name)
        return kept.__array_interface__
kept = np.ones(1 << 14)
talking = Talking()
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Handoff.Off = !handoff }}})
			before := harness.Eval[int](t, run.Remote, "len(threading.enumerate())")
			for _, name := range []string{"talking.array", "talking", "talking.array"} {
				view := run.View(t, name)
				view.Live()
				view, _, err := source(t, run, name).Refresh(t.Context(), view)
				if err != nil {
					t.Fatal(err)
				}
				closed(t, view)
			}
			if n := harness.Eval[int](t, run.Remote, "len(seen)"); n == 0 {
				t.Error("no look has run the program's code")
			}
			if after := harness.Eval[int](t, run.Remote, "len(threading.enumerate())"); after != before {
				t.Errorf("%d threads, %d before: %v", after, before, harness.Eval[any](t, run.Remote, "[repr(t) for t in threading.enumerate()]"))
			}
		})
	}
}
