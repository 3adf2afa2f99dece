package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
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
			run := harness.Start(t, "import numpy as np, remote\nremote.serve()\n", harness.Options{
				Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Handoff.Off = off }},
			})
			for change, want := range map[string]bool{
				"x[0] = 7": true, "y = x; x = y": true, "x = np.ones(1 << 16)": false, "del x": false, "x = None": false,
				"x = 'text'": false, "x = np.array([None])": false, "x.flags.writeable = False": false,
				"x = x[::2]": false, "x.resize(1 << 20, refcheck=False)": false,
			} {
				for _, opts := range [][]hostplugin.ViewOption{nil, {hostplugin.NoWait()}, {hostplugin.NoCopy()}, {hostplugin.Writable()}} {
					run.Remote.Exec(t, "x = np.zeros(1 << 16)")
					v := run.View(t, "x", opts...)
					if v.Route() != contract.RouteSharedHeap || !v.Live() {
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

// TestLiveOfWhatIsOffered: an array may get other memory in place, though it is published, if the program insists on
// it. Its views say so, under each of its names, and Refresh shows the new memory then.
func TestLiveOfWhatIsOffered(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
x = np.full(100000, 1.0)
ndbridge.publish({"a": x, "b": x})
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1") // answers when both are published
	for i, change := range []string{
		"x.resize(200000, refcheck=False); x[:] = 2",
		"x.__setstate__((1, (50000,), np.dtype('f8'), False, np.full(50000, 3.0).tobytes()))",
	} {
		was, is := float64(i+1), float64(i+2)
		var views []*core.View
		for _, name := range []string{"a", "b"} {
			src := source(t, run, name)
			view, _, err := src.Latest(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !view.Live() || slice[float64](t, view)[9] != was {
				t.Errorf("%s: live: %v, shows %v", name, view.Live(), slice[float64](t, view)[9])
			}
			views = append(views, view)
		}
		run.Remote.Exec(t, change)
		for _, view := range views {
			if view.Live() || slice[float64](t, view)[9] != was {
				t.Errorf("%s after %s: live: %v, shows %v", view.Name(), change, view.Live(), slice[float64](t, view)[9])
			}
			next, changed, err := source(t, run, view.Name()).Refresh(t.Context(), view)
			if err != nil || !changed || slice[float64](t, next)[9] != is || next.Live() == next.Copied() {
				t.Fatalf("Refresh of %s after %s = %v, %v", next.Name(), change, changed, err)
			}
			closed(t, next)
		}
	}
	run.NoLeases(t)
}
