package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestForkedViewsAreLiveAgain: views that stand show what the parent writes after each fork, also after several in a row, and also while
// children live, without anybody looking again: of all sizes, of parts, writable, of what has no name any more, and of what was published.
func TestForkedViewsAreLiveAgain(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, ndbridge, remote
small, large = np.zeros(9000), np.zeros(1 << 20)
many = [np.zeros(10000 + 1000 * i) for i in range(20)]
published, passing = np.zeros(1 << 16), np.zeros(1 << 16)
ndbridge.publish("frame", published)
kept = passing
everything = [small, large, published, kept, *many]
children = []

def fork(times, stay):
    for _ in range(times):
        pid = os.fork()
        if pid == 0:
            if stay:
                os.read(gate[0], 1)
            wrong = [i for i, x in enumerate(everything) if not x.min() == x.max() == step]
            for x in everything:
                x[:] = -1
            os._exit(wrong[0] + 1 if wrong else 0)
        children.append(pid)

def write(n):
    global step
    step = n
    for x in everything:
        x[:] = n

def ended():
    status = [os.waitpid(pid, 0)[1] for pid in children]
    children.clear()
    return status

gate = os.pipe()
write(0)
remote.serve()
`, harness.Options{Configs: promoting})
	views := []*core.View{
		run.View(t, "small"), run.View(t, "large"), run.View(t, "large[::2]"), run.View(t, "passing", hostplugin.Writable()), run.View(t, "frame"),
	}
	for i := range 20 {
		views = append(views, run.View(t, fmt.Sprintf("many[%d]", i)))
	}
	run.Remote.Exec(t, "del passing")
	for i, v := range views {
		if v.Route() != contract.RouteSharedHeap || first(t, v) != 0 {
			t.Fatalf("view %d: route %v (%v)", i, v.Route(), v.Reason())
		}
	}
	leases := run.Leases(t)
	for step := 1; step <= 6; step++ {
		stay := step%2 == 0
		run.Remote.Exec(t, fmt.Sprintf("fork(%d, %s)", 1+step%3, map[bool]string{true: "True", false: "False"}[stay]))
		if !stay {
			run.Remote.Exec(t, "status = ended(); assert not any(status), status")
		}
		run.Remote.Exec(t, fmt.Sprintf("write(%d)", step))
		for i, v := range views {
			shows := func() bool { return first(t, v) == float64(step) }
			harness.Eventually(t, harness.StartBound, fmt.Sprintf("view %d shows step %d", i, step), shows)
			if i != 3 { // whose name leads nowhere
				harness.Eventually(t, harness.StartBound, fmt.Sprintf("view %d is live", i), v.Live)
			}
		}
		if err := core.Set(views[3], 77.0, 5); err != nil {
			t.Fatal(err)
		}
		run.Remote.Exec(t, fmt.Sprintf("assert kept[5] == 77; kept[5] = %d", step))
		if stay {
			run.Remote.Exec(t, "os.write(gate[1], b'x' * len(children)); status = ended(); assert not any(status), status")
		}
	}
	if n := run.Leases(t); n > leases+1 { // the published one's offer is another after a fork
		t.Errorf("%d leases stand, and %d did", n, leases)
	}
}

// TestRefreshRightAfterAFork: a look shows what is current, however far the views are from being live again: while memory is moved, and while
// somebody holds it where it was.
func TestRefreshRightAfterAFork(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
xs = [np.zeros(n) for n in (9000, 1 << 17, 1 << 20)]
def fork(step):
    child = os.fork()
    if child == 0:
        os._exit(0)
    for x in xs:
        x[:] = step
    os.waitpid(child, 0)
remote.serve()
`, harness.Options{Configs: promoting})
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"xs[0]", "xs[1]", "xs[2]"}
	sources, views := make([]*hostplugin.Source, len(names)), make([]*core.View, len(names))
	for i, name := range names {
		sources[i] = source(t, run, name)
		views[i] = viewOf(t, sources[i])
	}
	group, err := run.Group(names...)
	if err != nil {
		t.Fatal(err)
	}
	same, other := 0, 0
	for step := 1; step <= 150; step++ {
		var releases []func()
		for _, v := range views {
			if random.IntN(4) == 0 {
				_, _, release, err := v.Acquire()
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
		}
		run.Remote.Exec(t, fmt.Sprintf("fork(%d)", step))
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		for i, src := range sources {
			next, changed, err := src.Refresh(t.Context(), views[i])
			if err != nil || first(t, next) != float64(step) {
				t.Fatalf("step %d: %s shows %v, changed %v, %v", step, names[i], first(t, next), changed, err)
			}
			if views[i] = next; changed {
				other++
			} else {
				same++
			}
		}
		if _, err := group.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			if x := first(t, group.View(name)); x != float64(step) {
				t.Fatalf("step %d: in the group %s shows %v", step, names[i], x)
			}
		}
		for _, release := range releases {
			release()
		}
	}
	if same == 0 || other == 0 {
		t.Errorf("%d views were the same, %d were others: the looks never met what they are to meet", same, other)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
	for _, v := range views {
		closed(t, v)
	}
	run.NoLeases(t)
}
