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

// TestNextFollowsVersions: who waits gets the newest version, with its number, and waits no more when the session
// is closed.
func TestNextFollowsVersions(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+"remote.serve()\n", harness.Options{})
	src := source(t, run, "frame")
	if _, _, err := src.Latest(t.Context(), nil); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Latest before anything is published: %v", err)
	}
	var v *core.View
	for i := 1; i <= 20; i++ {
		result := make(chan error, 1)
		go func() {
			var err error
			v, err = src.Next(t.Context(), v)
			result <- err
		}()
		run.Remote.Exec(t, `ndbridge.publish("frame", np.full(1 << 14, `+itoa(i)+`.0))`)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if first(t, v) != float64(i) || v.Version() != uint64(i) || v.Copied() {
			t.Errorf("version %d shows %v, want %d", v.Version(), first(t, v), i)
		}
		if same, changed, err := src.Latest(t.Context(), v); err != nil || changed || same != v {
			t.Errorf("Latest of the newest version: %v, %v", changed, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if same, err := src.Next(ctx, v); !errors.Is(err, context.DeadlineExceeded) || same != v {
		t.Errorf("Next = %v", err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := src.Next(t.Context(), v)
		result <- err
	}()
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, core.ErrClosed) {
		t.Errorf("Next beside Close: %v, want ErrClosed", err)
	}
}

// TestGroupNextIsOfOnePublish: what the program publishes at once comes at once, numbers of Python's own among it.
func TestGroupNextIsOfOnePublish(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	run := harness.Start(t, publishing+`
go = False
remote.start()
while not go: pass
for i in range(1, `+itoa(rounds)+` + 1):
    ndbridge.publish({"image": np.full(1 << 14, float(i)), "small": np.full(3, float(i)), "step": i, "loss": i / 2, "good": i % 2 == 0})
remote.serve()
`, harness.Options{})
	names := []string{"image", "small", "step", "loss", "good"}
	g, err := run.Group(names...)
	if err != nil {
		t.Fatal(err)
	}
	run.Remote.Exec(t, "go = True")
	looks := 0
	for last := int64(0); last < rounds; looks++ {
		if err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		step, err := core.At[int64](g.View("step"))
		if err != nil {
			t.Fatal(err)
		}
		good, err := core.At[bool](g.View("good"))
		if err != nil {
			t.Fatal(err)
		}
		x, y, loss := first(t, g.View("image")), first(t, g.View("small")), first(t, g.View("loss"))
		if want := float64(step); x != want || y != want || loss != want/2 || good != (step%2 == 0) || step <= last {
			t.Fatalf("after %d: image %v, small %v, step %d, loss %v, good %v", last, x, y, step, loss, good)
		}
		for _, v := range g.Views() {
			if v.Version() != uint64(step) {
				t.Errorf("%s is of version %d, step of %d", v.Name(), v.Version(), step)
			}
		}
		last = step
	}
	t.Logf("%d looks at %d versions", looks, rounds)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	run.NoLeases(t)
}

// TestVersionsGoOnAfterUnpublish: whoever takes a greater version for a newer one misses nothing.
func TestVersionsGoOnAfterUnpublish(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+"remote.serve()\n", harness.Options{})
	src := source(t, run, "frame")
	var v *core.View
	last := uint64(0)
	for i := range 9 {
		if i%3 == 2 {
			run.Remote.Exec(t, `ndbridge.unpublish("frame")`)
		}
		run.Remote.Exec(t, `ndbridge.publish({"frame": np.full(1 << 14, `+itoa(i)+`.0), "other": 1})`)
		var err error
		if v, err = src.Next(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if v.Version() <= last || first(t, v) != float64(i) {
			t.Errorf("version %d after version %d shows %v, want %d", v.Version(), last, first(t, v), i)
		}
		last = v.Version()
	}
	closed(t, v)
}

// stale counts the records about an array whose view is not live any more.
func stale(run *harness.Run, array, why string) (n int) {
	for line := range strings.Lines(run.Log.Text()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, "array="+array+" ") && strings.Contains(line, why) &&
			strings.Contains(line, "remedy=") {
			n++
		}
	}
	return n
}

// TestPublishedIsRebound: memory that a framework has put in the place of what was published is found by the next
// look, and the view of the memory before says that it is not live, and why, once: who refreshes it then is not told again.
func TestPublishedIsRebound(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ndbridge, remote, torch
p = torch.nn.Parameter(torch.full((1 << 18,), 1.0))
ndbridge.publish("p", p)
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	harness.Eval[int](t, run.Remote, "1") // it is published
	src := source(t, run, "p")
	v := viewOf(t, src)
	if !v.Live() || v.Version() != 1 {
		t.Errorf("live: %v, version %d", v.Live(), v.Version())
	}
	for i := range 3 {
		run.Remote.Exec(t, "p.data = torch.full((1 << 18,), "+itoa(i+2)+".0)")
		harness.Eventually(t, harness.StartBound, "the view is not live", func() bool { return !v.Live() })
		if v.Live() || first(t, v) != float64(i+1) {
			t.Errorf("live: %v; it shows %v", v.Live(), first(t, v))
		}
		if n := stale(run, "p", "other memory"); n != 1 {
			t.Errorf("%d records after %d changes", n, i+1)
		}
		next, changed, err := src.Refresh(t.Context(), v)
		if err != nil || !changed || first(t, next) != float64(i+2) || !next.Live() || next.Version() != uint64(i+2) {
			t.Fatalf("Refresh = %v, %v; version %d shows %v, live: %v", changed, err, next.Version(), first(t, next), next.Live())
		}
		v = next
	}
	closed(t, v)
	run.NoLeases(t)
}

// TestRefreshAfterAFork: views of what a fork has made private are live again soon: of variables, for which that is no change, and of what was
// published, of which the next look gives another view of the same version. Nothing is said of them.
func TestRefreshAfterAFork(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
import os
x, y = np.full(1 << 17, 1.0), np.full(1 << 17, 1.0)
ndbridge.publish("p", y)
def fork():
    child = os.fork()
    if child == 0:
        x[:] = y[:] = 9
        os._exit(0)
    os.waitpid(child, 0)
    x[:] = y[:] = 2
remote.serve()
`, harness.Options{Configs: promoting})
	for _, name := range []string{"x", "p"} {
		src := source(t, run, name)
		v := viewOf(t, src)
		if !v.Live() || v.Copied() {
			t.Fatalf("%s: live: %v, copied: %v", name, v.Live(), v.Copied())
		}
		run.Remote.Exec(t, "fork()")
		harness.Eventually(t, harness.StartBound, "the view of "+name+" is live again", v.Live)
		if x := first(t, v); x != 2 {
			t.Errorf("%s shows %v, want what the parent has written since", name, x)
		}
		run.Remote.Exec(t, "x[:] = y[:] = 3")
		same, changed, err := src.Refresh(t.Context(), v)
		if err != nil || name == "x" && (changed || same != v) || first(t, same) != 3 || !same.Live() {
			t.Errorf("%s: Refresh = %v, %v; it shows %v", name, changed, err, first(t, same))
		}
		if n := stale(run, name, "forked"); n != 0 {
			t.Errorf("%s: %d records of a fork", name, n)
		}
		closed(t, same)
		run.Remote.Exec(t, `x, y = np.full(1 << 17, 1.0), np.full(1 << 17, 1.0); ndbridge.publish("p", y)`)
	}
	run.NoLeases(t)
}

// TestRefreshMakesNoGarbage of what has not changed, be it shared, copied or published.
func TestRefreshMakesNoGarbage(t *testing.T) {
	run := harness.Start(t, publishing+`
x, small, y = np.full(1 << 17, 1.0), np.full(16, 1.0), np.full(1 << 17, 1.0)
ndbridge.publish("p", y)
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].Handoff.Spin = 10 * time.Millisecond },
	}})
	for _, name := range []string{"x", "small", "p"} {
		src := source(t, run, name)
		v := viewOf(t, src)
		ctx := t.Context()
		// On a busy machine an answer may come late, and then it is asked for by gRPC.
		harness.Eventually(t, harness.StartBound, "Refresh of "+name+" without an allocation", func() bool {
			return testing.AllocsPerRun(100, func() {
				if next, changed, err := src.Refresh(ctx, v); err != nil || changed || next != v {
					t.Fatal(changed, err)
				}
			}) == 0
		})
		closed(t, v)
	}
}
