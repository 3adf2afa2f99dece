package e2e

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// The cells of docs/lifetime.md that no other test proves.

const twoArrays = `
import gc, numpy as np, remote
a = np.full(1 << 17, 1.0)
small = np.full(16, 1.0)
remote.serve()
`

func TestClosedViewLetsGo(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, twoArrays, harness.Options{})
	view := run.View(t, "a")
	part, err := view.Sub(0, 5, 10)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // closing again does nothing
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := core.Slice[float64](view); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a slice of a closed view: %v, want ErrClosed", err)
	}
	if x := slice[float64](t, part)[0]; x != 1 {
		t.Errorf("a part of a closed view holds %v", x)
	}
	if leases := run.Leases(t); leases != 1 {
		t.Errorf("%d leases while a part is open, want 1", leases)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Second, "the lease has ended", func() bool { return run.Leases(t) == 0 })
	if got := harness.Eval[float64](t, run.Remote, "float(a.sum())"); got != 1<<17 {
		t.Errorf("the program's array sums to %v after the host let go", got)
	}
}

func TestArrayMayGoWhileLeased(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, twoArrays, harness.Options{})
	views := []*core.View{run.View(t, "a"), run.View(t, "small")}
	run.Remote.Exec(t, "del a, small; gc.collect()")
	run.Remote.Exec(t, "others = [np.full(1 << 17, 9.0) for _ in range(40)]")
	for _, view := range views {
		for i, x := range slice[float64](t, view) {
			if x != 1 {
				t.Fatalf("%s[%d] is %v after the program dropped it and made others", view.Name(), i, x)
			}
		}
	}
	if _, err := run.Session.View(t.Context(), "a", hostplugin.NoWait()); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("a view of a deleted array: %v, want ErrNotFound", err)
	}
}

func TestViewFollowsItsMemoryNotItsName(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, twoArrays, harness.Options{})
	old := run.View(t, "a")
	run.Remote.Exec(t, "a[3] = 4; kept = a; a = np.full(1 << 17, 2.0)")
	if x := slice[float64](t, old)[3]; x != 4 {
		t.Errorf("the view holds %v, want what the program wrote in place", x)
	}
	if x := slice[float64](t, run.View(t, "a"))[3]; x != 2 {
		t.Errorf("a new view holds %v, want the new array's 2", x)
	}
	run.Remote.Exec(t, "kept[3] = 5")
	if x := slice[float64](t, old)[3]; x != 5 {
		t.Errorf("the old view holds %v, want 5", x)
	}
}

func TestArraysOutliveTheScript(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]string{
		"runs off the end": "",
		"sys.exit()":       "import sys; sys.exit()",
		"sys.exit(0)":      "import sys; sys.exit(0)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, "import numpy as np\na = np.full(1 << 17, 1.0)\n"+ending, harness.Options{})
			if err := run.Wait(t.Context()); err != nil {
				t.Fatalf("Wait: %v", err)
			}
			if x := slice[float64](t, run.View(t, "a"))[0]; x != 1 {
				t.Errorf("a holds %v after the script's end", x)
			}
			if _, err := run.Session.View(t.Context(), "b"); !errors.Is(err, core.ErrNotFound) {
				t.Errorf("a name that never came: %v, want ErrNotFound without waiting", err)
			}
		})
	}
}

func TestViewsOutliveAnException(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
a = np.full(1 << 17, 1.0)
go = False
remote.start()
while not go: pass
raise ValueError("on purpose")
`, harness.Options{})
	view := run.View(t, "a")
	run.Remote.Exec(t, "go = True")
	err := run.Wait(t.Context())
	if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Type != "ValueError" || e.Message != "on purpose" {
		t.Errorf("Wait: %v, want the ValueError", err)
	}
	if x := slice[float64](t, view)[0]; x != 1 {
		t.Errorf("the view holds %v after the exception", x)
	}
}

func TestSessionCloseClosesItsViewsOnly(t *testing.T) {
	t.Parallel()
	cfg, _ := harness.Config(t, "import numpy as np\na = np.full(1 << 17, 1.0)\n", harness.Options{})
	host, err := hostplugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	var sessions [2]*hostplugin.Session
	var views [2]*core.View
	for i := range sessions {
		if sessions[i], err = host.Start(t.Context(), "program"); err != nil {
			t.Fatal(err)
		}
		if views[i], err = sessions[i].View(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := sessions[0].Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := sessions[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
	if harness.Alive(info.PID) {
		t.Error("the program lives on after its session was closed")
	}
	select {
	case <-sessions[0].Done():
	default:
		t.Error("a closed session is not done")
	}
	if _, err := core.Slice[float64](views[0]); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view of a closed session: %v, want ErrClosed", err)
	}
	if _, err := sessions[0].View(t.Context(), "a"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a new view of a closed session: %v, want ErrClosed", err)
	}
	if x := slice[float64](t, views[1])[0]; x != 1 {
		t.Errorf("a view of the other session holds %v", x)
	}

	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Slice[float64](views[1]); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view of a closed host: %v, want ErrClosed", err)
	}
	if _, err := host.Start(t.Context(), "program"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a start on a closed host: %v, want ErrClosed", err)
	}
}

func TestContextsBoundCallsNotWhatTheyMade(t *testing.T) {
	t.Parallel()
	cfg, _ := harness.Config(t, "import numpy as np\na = np.full(1 << 17, 1.0)\n", harness.Options{})
	host, err := hostplugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	ctx, cancel := context.WithCancel(t.Context())
	session, err := host.Start(ctx, "program")
	if err != nil {
		t.Fatal(err)
	}
	view, err := session.View(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if x := slice[float64](t, view)[0]; x != 1 {
		t.Errorf("the view holds %v after its context's end", x)
	}
	again, err := session.View(t.Context(), "a")
	if err != nil {
		t.Fatalf("a view after the end of Start's context: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for range 100 { // the program answers at once, or it does not
		if _, err := session.View(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Fatalf("a view under an ended context: %v, want context.Canceled", err)
		}
	}
}

func TestMappedViewOutlivesItsFilesName(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
file = os.path.join(os.path.dirname(__file__), "mapped")
a = np.memmap(file, "f8", "w+", shape=(1 << 14,))
a[:] = 3
remote.serve()
`, harness.Options{})
	view := run.View(t, "a")
	file := harness.Eval[string](t, run.Remote, "file")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if x := slice[float64](t, view)[100]; x != 3 {
		t.Errorf("the view holds %v after the file's name was removed", x)
	}
}

// TestTruncatedFileOfACopy: with mapped_files = "copy" a program can take no memory away from a view.
func TestTruncatedFileOfACopy(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
file = os.path.join(os.path.dirname(__file__), "mapped")
a = np.memmap(file, "f8", "w+", shape=(1 << 14,))
a[:] = 3
b = np.full(1 << 14, 4.0)
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].CopyMappedFiles = true },
	}})
	view, shared := run.View(t, "a"), run.View(t, "b")
	if view.Route() != contract.RouteStaged || view.Reason() != contract.ReasonMappedFile {
		t.Fatalf("the view came as %v because of %v", view.Route(), view.Reason())
	}
	if shared.Route() != contract.RouteSharedHeap {
		t.Errorf("an array of the shared heap came as %v because of %v", shared.Route(), shared.Reason())
	}
	if err := os.Truncate(harness.Eval[string](t, run.Remote, "file"), 0); err != nil {
		t.Fatal(err)
	}
	for _, x := range slice[float64](t, view) {
		if x != 3 {
			t.Fatalf("the view holds %v after the file was truncated", x)
		}
	}
	if _, err := run.Session.View(t.Context(), "a", hostplugin.Writable()); !errors.Is(err, core.ErrPointer) {
		t.Errorf("a view of what is not there any more: %v, want ErrPointer", err)
	}
}
