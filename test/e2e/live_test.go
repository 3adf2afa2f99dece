package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestLive: a view is live for as long as its name leads to its memory, whatever else the name leads to then, and
// whether or not looks wait for names.
func TestLive(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]bool{"handoff": false, "gRPC": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handoff := !off
			run := harness.Start(t, "import numpy as np, remote\nremote.serve()\n", harness.Options{
				Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Handoff = &handoff }},
			})
			for change, want := range map[string]bool{
				"x[0] = 7": true, "y = x; x = y": true, "x = np.ones(1 << 16)": false, "del x": false, "x = None": false,
				"x = 'text'": false, "x = np.array([None])": false, "x.flags.writeable = False": false,
				"x = x[::2]": false, "x.resize(1 << 20, refcheck=False)": false,
			} {
				for _, opts := range [][]hostplugin.ViewOption{nil, {hostplugin.NoWait()}, {hostplugin.NoCopy()}, {hostplugin.Writable()}} {
					run.Remote.Exec(t, "x = np.zeros(1 << 16)")
					v := run.View(t, "x", opts...)
					if v.Route() != core.RouteSharedHeap || !v.Live() {
						t.Fatalf("a new view by %v is live: %v", v.Route(), v.Live())
					}
					run.Remote.Exec(t, change)
					if got := v.Live(); got != want {
						t.Errorf("after %s, with %d options: live is %v, want %v", change, len(opts), got, want)
					}
					closeView(t, v)
				}
			}
		})
	}
}
