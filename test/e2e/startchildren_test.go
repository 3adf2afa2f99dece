package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	programs "github.com/ndbridge/ndbridge/internal/running"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// kinds is a program with a child of each kind. Each counts in an array that it has made, and the forked ones in one that they have
// inherited, too.
const kinds = `
import multiprocessing, os, subprocess, sys, time
import numpy as np

before = dict(os.environ)
inherited = np.zeros(1 << 17)

def main():
    fresh = np.full(1 << 17, float(os.getpid()))
    while os.getppid() > 1:
        fresh[5] += 1
        inherited[5] += 1
        time.sleep(0.001)

if __name__ == "__main__":
    import remote
    children = {}
    for kind in "fork", "spawn", "forkserver":
        process = multiprocessing.get_context(kind).Process(target=main, daemon=True)
        process.start()
        children[kind] = process.pid
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            main()
        time.sleep(1000)
    children["os.fork"] = middle
    file = os.path.join(os.path.dirname(__file__), "child.py")
    with open(file, "w") as f:
        print("import os, time, numpy as np\nseen = 'LD_PRELOAD' in os.environ or any('NDBRIDGE' in v for v in os.environ)\nseen = np.array([seen])\n"
              "def main():\n    fresh = np.full(1 << 17, float(os.getpid()))\n    while os.getppid() > 1:\n        fresh[5] += 1\n        time.sleep(0.001)\nmain()", file=f)
    children["subprocess"] = subprocess.Popen([sys.executable, file]).pid
    children["posix_spawn"] = os.posix_spawn(sys.executable, [sys.executable, file], os.environ)
    children["an environment of its own"] = subprocess.Popen([sys.executable, file], env={}).pid
    unchanged = before == dict(os.environ) and "LD_PRELOAD" not in os.environ
    remote.serve()
`

// TestStartedChildren: a host comes to every child of a program that it has started, whichever way it was made, and sees its arrays as the
// program's own. Neither the program nor a child finds anything of that in its environment.
func TestStartedChildren(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for _, python := range []string{pythonOf(t, "3.8"), harness.Python(t), pythonOf(t, "3.14")} {
		run := harness.Start(t, kinds, harness.Options{Python: python, Configs: promoting})
		if !harness.Eval[bool](t, run.Remote, "unchanged") {
			t.Errorf("%s: the environment is another", python)
		}
		want := harness.Eval[map[string]int](t, run.Remote, "children")
		names := map[string]int{"program": 3, "spawn": 1, "forkserver": 2, "resource_tracker": 1, "child": 3}
		var found []hostplugin.Child
		harness.Eventually(t, harness.StartBound, "all children listen", func() bool {
			var err error
			if found, err = run.Children(t.Context()); err != nil {
				t.Fatal(err)
			}
			have := make(map[string]int)
			for _, c := range found {
				have[c.Name]++
			}
			return maps.Equal(have, names)
		})
		for how, pid := range want {
			if !slices.ContainsFunc(found, func(c hostplugin.Child) bool { return c.PID == pid }) {
				t.Errorf("%s: there is no child %d, of %s: %+v", python, pid, how, found)
			}
		}
		for _, c := range found {
			if c.Name == "resource_tracker" || c.Name == "forkserver" && c.Parent == run.PID(t) || c.PID == want["os.fork"] {
				continue // without an array of its own
			}
			lookAtChild(t, run.Host, c, c.Name == "program")
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
		harness.Eventually(t, harness.StartBound, "what killed children have left is removed by who lists", func() bool {
			alive := slices.ContainsFunc(programs.Live(), func(p programs.Program) bool { return strings.HasPrefix(p.Path, dir) })
			left, err := os.ReadDir(filepath.Join(dir, "ndbridge"))
			return !alive && err == nil && len(left) == 0 // others listen elsewhere
		})
	}
}

// lookAtChild holds that a host sees a child's arrays live: what it has made, and what it has inherited.
func lookAtChild(t *testing.T, host *hostplugin.Host, c hostplugin.Child, inherits bool) {
	t.Helper()
	child, err := host.Attach(t.Context(), hostplugin.PID(c.PID))
	if err != nil {
		t.Errorf("%+v: %v", c, err)
		return
	}
	defer child.Close()
	counts := func(name string) {
		v, err := child.View(t.Context(), name)
		if err != nil {
			t.Fatalf("%+v: %s: %v", c, name, err)
		}
		if v.Route() != contract.RouteSharedHeap || !v.Live() {
			t.Errorf("%+v: %s: route %v, %v", c, name, v.Route(), v.Reason())
		}
		before := first(t, v)
		harness.Eventually(t, harness.StartBound, name+" is live", func() bool { return slice[float64](t, v)[5] > before+2 })
	}
	counts("main().fresh")
	if inherits {
		counts("inherited")
	}
	if c.Name == "child" {
		seen, err := child.View(t.Context(), "seen")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := core.Slice[bool](seen); err != nil || data[0] {
			t.Errorf("%+v finds something in its environment: %v", c, err)
		}
	}
}
