package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestForkExamples runs the examples of docs/forks.md, and holds what the page says of their arrays.
func TestForkExamples(t *testing.T) {
	t.Parallel()
	for script, test := range map[string]struct {
		python string
		routes map[string]core.Route
	}{
		"pool.py": {
			python: harness.Python(t),
			routes: map[string]core.Route{"frame": contract.RouteSharedHeap},
		},
		"loader.py": {
			python: harness.PythonAll(t),
			routes: map[string]core.Route{"weights": contract.RouteSharedHeap, "batch": contract.RouteMappedFile},
		},
		"forked.py": {
			python: harness.Python(t),
			routes: map[string]core.Route{"weights": contract.RouteSharedHeap, "biases": contract.RouteSharedHeap},
		},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			session := documented(t, test.python, script)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := session.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			for name, route := range test.routes {
				view, err := session.View(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if view.Route() != route {
					t.Errorf("%s: route %v (%v), want %v", name, view.Route(), view.Reason(), route)
				}
				closed(t, view)
			}
		})
	}
}

// TestForkLeavesMappedFilesShared: a fork freezes the shared heap. Memory that is a file's stays shared, as it does
// between the two processes.
func TestForkLeavesMappedFilesShared(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, tempfile, numpy as np, remote
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=1 << 20)
shared = np.frombuffer(block.buf, "f8")
mapped = np.memmap(tempfile.NamedTemporaryFile(), dtype="f8", mode="w+", shape=(1 << 17,))
private = np.zeros(1 << 17)
remote.serve()
`, harness.Options{Configs: promote("never")})
	views := map[string]*core.View{}
	for _, name := range []string{"shared", "mapped", "private"} {
		views[name] = run.View(t, name)
	}
	run.Remote.Exec(t, "os.waitpid(os.fork() or os._exit(0), 0); shared[0] = mapped[0] = private[0] = 1; block.unlink()")
	for name, view := range views {
		is := name != "private"
		want := map[bool]float64{true: 1, false: 0}[is]
		if view.Live() != is || first(t, view) != want {
			t.Errorf("%s is live: %v, and shows %v; want %v", name, view.Live(), first(t, view), want)
		}
	}
}
