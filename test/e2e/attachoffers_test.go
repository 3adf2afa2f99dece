package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachIsOffered: what was published before a host came is offered to it as what is published later: the host needs neither Python's
// lock nor an answer for it, be it the same array, or another that is published in its place.
func TestAttachIsOffered(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	run.Remote.Exec(t, `
import sys, time
flag = np.zeros(1 << 17)
ndbridge.publish({"flag": flag, "same": x, "again": x, "next": np.full(1 << 17, 1.0), "number": 7})
def spin():
    for name, array in ("again", x), ("next", np.full(1 << 17, 2.0)), ("number", 8):
        ndbridge.publish(name, array)
    sys.setswitchinterval(100)
    flag[1] = 1
    while flag[0] == 0: pass
    sys.setswitchinterval(0.005)
`)
	host := harness.NewHost(t)
	s := run.Attach(t, host)
	sources := map[string]*hostplugin.Source{}
	for _, name := range []string{"same", "again", "next", "number"} {
		sources[name] = source(t, s, name)
	}
	flag := slice[float64](t, s.View(t, "flag", hostplugin.Writable()))
	spins := make(chan struct{})
	go func() {
		defer close(spins)
		run.Remote.Exec(t, "spin()")
	}()
	harness.Eventually(t, harness.StartBound, "the program spins", func() bool { return flag[1] == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for name, want := range map[string]struct {
		first   float64
		version uint64
	}{"same": {1, 1}, "again": {1, 2}, "next": {2, 2}, "number": {8, 2}} {
		v, err := sources[name].Next(ctx, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var first float64
		if name == "number" {
			first = float64(slice[int64](t, v)[0])
		} else {
			first = slice[float64](t, v)[0]
		}
		if first != want.first || v.Version() != want.version {
			t.Errorf("%s: version %d shows %v, want %v", name, v.Version(), first, want)
		}
	}
	flag[0] = 1
	<-spins
}

// TestAttachToManyNames: that a program has published very many names holds up neither a host that comes nor the program.
func TestAttachToManyNames(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	run.Remote.Exec(t, "ndbridge.publish({'n%d' % i: i for i in range(16000)})")
	host := harness.NewHost(t)
	for range 2 { // the second finds them in the plugin
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it took a minute
		s, err := host.Attach(ctx, hostplugin.Socket(run.Socket))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		src, err := s.Source("n15999")
		if err != nil {
			t.Fatal(err)
		}
		if v, _, err := src.Latest(t.Context(), nil); err != nil || slice[int64](t, v)[0] != 15999 {
			t.Errorf("the last: %v", err)
		}
	}
}

// TestAttachPublishedRefused: what a host's settings refuse that others take is no reason for it to wait for ever: it learns why when it
// asks, also if what the program publishes under the name was fit before.
func TestAttachPublishedRefused(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Python: harness.PythonAll(t), Heap: true})
	run.Remote.Exec(t, "import torch\nparameter = torch.ones(1 << 17, requires_grad=True)\nndbridge.publish({'early': parameter, 'turns': torch.zeros(1 << 17), 'none': [1]})")
	config := hostplugin.Config{Logger: harness.Discard(), Adapters: []hostplugin.Adapter{
		{Name: "torch", Quirks: []hostplugin.QuirkSetting{{ID: "torch.requires-grad", Effect: "refuse"}}},
	}, Programs: []hostplugin.Program{{Name: "x", Module: "x"}}}
	strict, err := hostplugin.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	refusing, taking := run.Attach(t, strict), run.Attach(t, harness.NewHost(t))
	turns := source(t, refusing, "turns")
	v, err := turns.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	run.Remote.Exec(t, "ndbridge.publish({'late': parameter, 'turns': parameter, 'beside': 3})")
	for _, name := range []string{"early", "late", "turns"} {
		before := v
		if name != "turns" {
			before = nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := source(t, refusing, name).Next(ctx, before)
		cancel()
		if !errors.Is(err, core.ErrUnsupported) || !strings.Contains(err.Error(), "grad") {
			t.Errorf("%s: %v", name, err)
		}
		if v, err := source(t, taking, name).Next(t.Context(), nil); err != nil || slice[float32](t, v)[0] != 1 {
			t.Errorf("%s, of a host that takes it: %v", name, err)
		}
	}
	if v, err := source(t, refusing, "beside").Next(t.Context(), nil); err != nil || slice[int64](t, v)[0] != 3 {
		t.Errorf("what was published beside: %v", err)
	}
	for _, s := range []*harness.Run{refusing, taking} { // no host could take that, but there was none yet
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := source(t, s, "none").Next(ctx, nil)
		cancel()
		if !errors.Is(err, core.ErrUnsupported) || !strings.Contains(err.Error(), "list") {
			t.Errorf("what is no array: %v", err)
		}
	}
	run.Remote.Exec(t, "try: ndbridge.publish('none', [1])\nexcept TypeError: pass\nelse: raise Exception('it was published')")
	run.Remote.Exec(t, "ndbridge.publish('turns', torch.full((1 << 17,), 5.0))")
	if v, err := turns.Next(t.Context(), nil); err != nil || slice[float32](t, v)[0] != 5 {
		t.Errorf("what is fit again: %v", err)
	}
}

// TestAttachGroupsOfThreads: what a thread publishes together is never seen in parts, though another one publishes the same names
// while arrays are asked for their memory.
func TestAttachGroupsOfThreads(t *testing.T) {
	t.Parallel()
	const rounds = 200
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	run.Remote.Exec(t, fmt.Sprintf(`
import threading, time
class Slow:
    def __init__(self, value): self.array = np.full(10, float(value))
    @property
    def __array_interface__(self):
        time.sleep(0)
        return self.array.__array_interface__
def publishes(begin):
    for i in range(begin, begin + %d):
        ndbridge.publish({"a": Slow(i), "b": Slow(i)})
threads = [threading.Thread(target=publishes, args=(n * 1000,)) for n in range(3)]
ndbridge.publish({"a": Slow(-1), "b": Slow(-1)})
`, rounds))
	host := harness.NewHost(t)
	s := run.Attach(t, host)
	group, err := s.Group("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	run.Remote.Exec(t, "[t.start() for t in threads]; threading.Thread(target=lambda: ([t.join() for t in threads], ndbridge.publish({'a': Slow(-2), 'b': Slow(-2)}))).start()")
	for looks := 0; ; looks++ {
		if err := group.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, b := slice[float64](t, group.View("a"))[0], slice[float64](t, group.View("b"))[0]
		if a != b {
			t.Fatalf("after %d looks: %v beside %v", looks, a, b)
		}
		if a == -2 {
			return
		}
	}
}

// TestAttachWhilePublishing: a host that comes while the program publishes as fast as it can sees what belongs together, never goes back,
// and counts each version from the first that it sees.
func TestAttachWhilePublishing(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	run.Remote.Exec(t, `
import threading
over = False
def publishes():
    i = 0
    while not over:
        i += 1
        ndbridge.publish({"step": i, "frame": np.full(1 << 14, float(i)), "again": x})
thread = threading.Thread(target=publishes)
thread.start()
`)
	host := harness.NewHost(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 5 {
				s, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket))
				if err != nil {
					t.Error(err)
					return
				}
				followsVersions(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	run.Remote.Exec(t, "over = True; thread.join()")
}

// followsVersions looks at what TestAttachWhilePublishing publishes.
func followsVersions(t *testing.T, s *hostplugin.Session) {
	t.Helper()
	group, err := s.Group("step", "frame", "again")
	if err != nil {
		t.Error(err)
		return
	}
	defer group.Close()
	var before int64
	var uncounted int64
	for look := range 50 {
		if err := group.Next(t.Context()); err != nil {
			t.Error(err)
			return
		}
		step, err1 := core.At[int64](group.View("step"))
		frame, err2 := core.Slice[float64](group.View("frame"))
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
			return
		}
		version := group.View("step").Version()
		if look == 0 {
			uncounted = step - int64(version)
		}
		if frame[0] != float64(step) || frame[len(frame)-1] != float64(step) || step <= before || step-int64(version) != uncounted ||
			group.View("again").Version() != version {
			t.Errorf("look %d: step %d after %d is version %d, from %d on, beside a frame of %v and version %d of the same array",
				look, step, before, version, uncounted, frame[0], group.View("again").Version())
			return
		}
		before = step
	}
}
