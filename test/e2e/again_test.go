package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestKnownAgain changes what a name means in ways that leave as much as possible as it was, and compares
// the name's views, new ones and one that is refreshed, with those by a name that the program looks at anew each time.
func TestKnownAgain(t *testing.T) {
	t.Parallel()
	for framework, a := range cases(t) {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, a.setup+"import remote\nG = globals()\nremote.serve()\n", harness.Options{Python: a.python})
			t.Run("large", func(t *testing.T) { moves(t, run, a.moves) })
			run.Remote.Exec(t, "G.pop('x', None); G.pop('y', None)\n"+small(a.setup))
			for i, move := range a.moves {
				a.moves[i] = small(move)
			}
			t.Run("small", func(t *testing.T) { moves(t, run, a.moves) })
		})
	}
}

// moves makes the moves, and compares after each.
func moves(t *testing.T, run *harness.Run, moves []string) {
	t.Helper()
	var pairs []*pair
	for _, o := range []hostplugin.ViewOption{hostplugin.AllowCopy(), hostplugin.Writable(), hostplugin.NoCopy()} {
		opts := []hostplugin.ViewOption{hostplugin.NoWait(), o}
		pairs = append(pairs, &pair{known: source(t, run, "x"), anew: source(t, run, `G["x"]`), opts: opts})
	}
	var standing []*core.View
	for _, move := range moves {
		run.Remote.Exec(t, move)
		before := standing
		standing = nil
		for _, p := range pairs {
			for range 3 { // what the first finds is known to the others, and to the next move's
				standing = append(standing, p.compare(t, move)...)
			}
		}
		for _, v := range before {
			closeView(t, v)
		}
	}
	for _, p := range pairs {
		if p.kept != nil {
			standing = append(standing, p.kept)
		}
	}
	for _, v := range standing {
		closeView(t, v)
	}
	run.NoLeases(t)
}

// pair is a name twice: once as it may be known again, and once with a step, which it never is.
type pair struct {
	known, anew *hostplugin.Source
	opts        []hostplugin.ViewOption
	kept        *core.View // of known; nil: there was none yet
}

// compare asks for both, and gives those of the views that there are.
func (p *pair) compare(t *testing.T, what string) (views []*core.View) {
	t.Helper()
	got, err := p.known.View(t.Context(), p.opts...)
	want, wantErr := p.anew.View(t.Context(), p.opts...)
	alike(t, what, got, err, want, wantErr)
	p.kept, _, err = p.known.Refresh(t.Context(), p.kept, p.opts...)
	alike(t, what+", refreshed", p.kept, err, want, wantErr)
	return slices.DeleteFunc([]*core.View{got, want}, func(v *core.View) bool { return v == nil })
}

// alike holds that two answers say the same.
func alike(t *testing.T, what string, got *core.View, err error, want *core.View, wantErr error) {
	t.Helper()
	if err != nil || wantErr != nil {
		e, ok := errors.AsType[*core.Error](wantErr)
		if err == nil || !ok || !errors.Is(err, e.Kind) {
			t.Errorf("after %s: %v, want %v", what, err, wantErr)
		}
		return
	}
	if g, w := describeView(got), describeView(want); g != w {
		t.Errorf("after %s:\n%s, want\n%s", what, g, w)
	} else if !bytes.Equal(bytesOf(t, got), bytesOf(t, want)) {
		t.Errorf("after %s: other values than the program has", what)
	}
}

// describeView says all but the values.
func describeView(v *core.View) string {
	spec := v.Layout().Spec()
	if v.Copied() {
		spec.Offset = 0 // each copy lies elsewhere
	}
	return fmt.Sprintf("%+v, %s, %v, %v, %v, writable %v", spec, v.Framework(), v.Route(), v.Reason(), v.Quirks(), v.Writable())
}

func bytesOf(t *testing.T, v *core.View) []byte {
	t.Helper()
	b := make([]byte, v.Layout().NBytes())
	if _, err := core.CopyBytes(t.Context(), b, v); err != nil {
		t.Fatal(err)
	}
	return b
}

func closeView(t *testing.T, v *core.View) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestKnownAgainAfterFork: memory that was made private by a fork, and shareable again, is not taken for what it was, and views from
// before come to show it.
func TestKnownAgainAfterFork(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
x = np.full(1 << 17, 1.0)
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    x[:] = 7
remote.serve()
`, harness.Options{Configs: promoting})
	x := source(t, run, "x")
	var before []*core.View
	for range 3 {
		v, err := x.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer closeView(t, v)
		before = append(before, v)
	}
	run.Remote.Exec(t, "fork()")
	after, err := x.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeView(t, after)
	if after.Route() != contract.RouteSharedHeap || slice[float64](t, after)[0] != 7 {
		t.Errorf("after a fork: %s of %v, want the shared heap with 7", describeView(after), slice[float64](t, after)[0])
	}
	harness.Eventually(t, harness.StartBound, "the view from before the fork is live", before[2].Live)
	if got := slice[float64](t, before[2])[0]; got != 7 {
		t.Errorf("the view from before the fork holds %v, want 7", got)
	}
}

// TestKnownAgainWhileBusy: a program that keeps Python's lock for long is waited for, as ever; what it has
// changed meanwhile is seen, and what had been asked for in vain stays leased to nobody.
func TestKnownAgainWhileBusy(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ctypes, numpy as np, remote, threading
x = np.full(1 << 17, 1.0)
def keep_the_lock():
    global x
    y = np.full(1 << 17, 2.0)
    ctypes.PyDLL(None).usleep(300_000)
    x = y
remote.serve()
`, harness.Options{})
	x := source(t, run, "x")
	for range 3 {
		closeView(t, viewOf(t, x))
	}
	run.Remote.Exec(t, "threading.Thread(target=keep_the_lock).start()")
	harness.Eventually(t, harness.StartBound, "the other array is seen", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
		defer cancel()
		v, err := x.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer closeView(t, v)
		return slice[float64](t, v)[0] == 2
	})
	run.NoLeases(t)
}

// TestKnownAgainPublished: a name that is published means that, and not the variable, until it is not.
func TestKnownAgainPublished(t *testing.T) {
	t.Parallel()
	const program = `
import ndbridge, numpy as np, remote
x, other = np.full(1 << 17, 1.0), np.full(1 << 17, 2.0)
remote.serve()
`
	for name, code := range map[string]string{"large": program, "small": small(program)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			knownAgainPublished(t, code)
		})
	}
}

func knownAgainPublished(t *testing.T, code string) {
	t.Helper()
	run := harness.Start(t, code, harness.Options{})
	x := source(t, run, "x")
	for _, step := range []struct {
		code string
		want float64
	}{
		{"pass", 1},
		{`ndbridge.publish("x", other)`, 2},
		{"other[:] = 3", 3},
		{`ndbridge.publish("x", x)`, 1},
		{"x[:] = 4", 4},
		{`ndbridge.unpublish("x")`, 4},
	} {
		run.Remote.Exec(t, step.code)
		for range 3 {
			v, err := x.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer closeView(t, v)
			if got := slice[float64](t, v)[0]; got != step.want {
				t.Errorf("after %s: %v, want %v", step.code, got, step.want)
			}
		}
	}
}

// TestKnownAgainPublishedWithDots: a name with dots that is published is not the variable that it begins with,
// be that the array that was published under it before.
func TestKnownAgainPublishedWithDots(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ndbridge, numpy as np, remote
x, other = np.full(1 << 17, 1.0), np.full(1 << 17, 2.0)
ndbridge.publish("x.y", x)
remote.serve()
`, harness.Options{})
	y := source(t, run, "x.y")
	for _, step := range []struct {
		code string
		want float64
	}{{"pass", 1}, {`ndbridge.publish("x.y", other)`, 2}, {`ndbridge.publish("x.y", x)`, 1}} {
		run.Remote.Exec(t, step.code)
		for range 3 {
			v, err := y.View(t.Context(), hostplugin.Writable()) // what is read only is offered
			if err != nil {
				t.Fatal(err)
			}
			defer closeView(t, v)
			if got := slice[float64](t, v)[0]; got != step.want {
				t.Errorf("after %s: %v, want %v", step.code, got, step.want)
			}
		}
	}
}

// TestKnownAgainLeavesNothing: leases on one array, given back in any order and by both ways, keep it as
// long as one of them stands and no longer.
func TestKnownAgainLeavesNothing(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import gc, sys, numpy as np, jax.numpy as jnp, torch, remote
n, t, j = np.zeros(1 << 18, "f4"), torch.zeros(1 << 18), jnp.zeros(1 << 18)
N, T, J = np.zeros(10, "f4"), torch.zeros(10), jnp.zeros(10)
def references():
    gc.collect()
    return [sys.getrefcount(x) for x in (n, t, j, N, T, J)]
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	for _, name := range []string{"n", "t", "j", "N", "T", "J"} {
		closeView(t, run.View(t, name)) // what comes with a framework's first view
	}
	run.NoLeases(t)
	before := harness.Eval[[]int](t, run.Remote, "references()")
	for _, name := range []string{"n", "t", "j", "N", "T", "J"} {
		var views []*core.View
		x := source(t, run, name)
		for range 40 {
			v, err := x.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			views = append(views, v)
		}
		rand.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
		for i, v := range views {
			closeView(t, v)
			if i == len(views)-2 && run.Leases(t) == 0 {
				t.Errorf("%s: no lease stands while a view does", name)
			}
		}
	}
	run.NoLeases(t)
	harness.Eventually(t, harness.StartBound, "the references are what they were", func() bool {
		return slices.Equal(before, harness.Eval[[]int](t, run.Remote, "references()"))
	})
}

// TestKnownAgainUsesMemoryAgain: an array that takes the place of another which nobody has leased any more
// is seen as what it is.
func TestKnownAgainUsesMemoryAgain(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{17, 7} {
		t.Run(fmt.Sprintf("%d elements", 1<<bits), func(t *testing.T) {
			t.Parallel()
			usesMemoryAgain(t, bits)
		})
	}
}

func usesMemoryAgain(t *testing.T, bits int) {
	t.Helper()
	run := harness.Start(t, "import numpy as np, remote\nremote.serve()\n", harness.Options{})
	x := source(t, run, "x")
	places := map[int64]bool{}
	for i := range 100 {
		run.Remote.Exec(t, fmt.Sprintf(`x = None; x = np.full(1 << %d, %d.0)`, bits, i))
		for range 3 {
			v, err := x.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := slice[float64](t, v); got[0] != float64(i) || got[len(got)-1] != float64(i) {
				t.Fatalf("array %d holds %v", i, got[0])
			}
			closeView(t, v)
		}
		places[harness.Eval[int64](t, run.Remote, "x.ctypes.data")] = true
		if i%2 == 0 {
			run.NoLeases(t)
		}
	}
	if len(places) == 100 {
		t.Error("no memory was used again, so this shows nothing")
	}
}
