package e2e

import (
	_ "embed" // testdata/allocators.py
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

//go:embed testdata/allocators.py
var allocatorsProgram string

// TestAllocators: beside PyArrow's allocators, and with the whole program on another malloc than the C library's, looks at random
// show what the program has written, whether they copy or not, and the program loses nothing. What is not the C library's is copied.
func TestAllocators(t *testing.T) {
	t.Parallel()
	for _, malloc := range []string{"glibc", "jemalloc", "mimalloc", "tcmalloc"} {
		env := map[string]string{"PYTHONFAULTHANDLER": "1", "MALLOC_MMAP_THRESHOLD_": "131072"} // else glibc would map less and less by itself
		if malloc != "glibc" {
			env["LD_PRELOAD"] = filepath.Join(harness.Mallocs(t), malloc+".so")
		}
		t.Run(malloc+" started", func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, allocatorsProgram, harness.Options{Python: harness.PythonMore(t), Configs: promoting, Env: env})
			shared := besideAllocators(t, run)
			want := []string{"numpy", "system array", "system pool"}
			if malloc == "glibc" {
				want = []string{"bytearray", "malloc", "numpy", "system array", "system pool"}
			}
			if !slices.Equal(shared, want) {
				t.Errorf("of %v, not of %v, something was shared", shared, want)
			}
		})
		t.Run(malloc+" alone", func(t *testing.T) {
			t.Parallel()
			opts := harness.RunningOptions{Python: harness.PythonMore(t), Env: []string{"ALONE=1", "NDBRIDGE_HEAP_PROMOTE=always"}}
			for name, value := range env {
				opts.Env = append(opts.Env, name+"="+value)
			}
			alone := harness.RunAlone(t, allocatorsProgram, opts)
			shared := besideAllocators(t, alone.Attach(t, harness.NewHost(t)))
			var want []string // what an object keeps: of the end of the rest the heap does not learn in time
			if malloc == "glibc" {
				want = []string{"bytearray", "numpy"}
			}
			if !slices.Equal(shared, want) {
				t.Errorf("of %v, not of %v, something was shared", shared, want)
			}
			if alone.Stderr() != "" {
				t.Errorf("the program: %s", alone.Stderr())
			}
		})
	}
}

// looker looks at the arrays of testdata/allocators.py.
type looker struct {
	sources []*hostplugin.Source
	views   []*core.View
	kept    map[*core.View]shown
	shared  map[string]bool // kinds of arrays
}

// shown is what a view has shown: whose numbers, and the first and the last one. What the program has given back to the system is 0.
type shown struct{ owner, least, most uint64 }

// again holds that a view, which has shown something before, shows no other array, and nothing older.
func (s shown) again(t *testing.T, v *core.View) shown {
	t.Helper()
	now := shown{owner: s.owner, least: math.MaxUint64}
	for i, x := range slice[uint64](t, v) {
		if x == 0 {
			continue
		}
		if now.owner == 0 {
			now.owner = x >> 32
		}
		if x>>32 != now.owner || x < s.least {
			t.Fatalf("%v, %v %v: element %d is %#x, and not of %#x, from %#x on", v, v.Route(), v.Reason(), i, x, now.owner, s.least)
		}
		now.least, now.most = min(now.least, x), max(now.most, x)
	}
	return shown{now.owner, min(now.least, max(now.most, s.least)), now.most}
}

// besideAllocators looks while the program works, and while it rests, and gives of which kinds arrays were shared.
func besideAllocators(t *testing.T, run *harness.Run) []string {
	t.Helper()
	l := &looker{kept: make(map[*core.View]shown), shared: make(map[string]bool)}
	for i := range 10 {
		l.sources = append(l.sources, source(t, run, "slots["+itoa(i)+"].a"))
		l.views = append(l.views, viewOf(t, l.sources[i]))
	}
	run.Remote.Exec(t, "start()")
	for range 20 {
		for range 10 {
			l.look(t)
		}
		l.compare(t, run)
	}
	state := harness.Eval[struct {
		Failures []string
		Steps    int
	}](t, run.Remote, "end()")
	if len(state.Failures) > 0 || state.Steps < 20 {
		t.Errorf("after %d steps: %s", state.Steps, strings.Join(state.Failures, "\n"))
	}
	for _, v := range append(l.views, slices.Collect(maps.Keys(l.kept))...) {
		closed(t, v)
	}
	run.NoLeases(t)
	return slices.Sorted(maps.Keys(l.shared))
}

// look looks at an array that the program may just be writing to, or replacing.
func (l *looker) look(t *testing.T) {
	t.Helper()
	i := rand.IntN(len(l.sources))
	next, _, err := l.sources[i].Refresh(t.Context(), l.views[i])
	if err == nil {
		l.views[i] = next
		shown{}.again(t, next)
	}
	if v, err := l.sources[i].View(t.Context()); err == nil {
		l.kept[v] = shown{}.again(t, v)
	}
	for v, before := range l.kept {
		l.kept[v] = before.again(t, v)
		if len(l.kept) > 10 {
			closed(t, v)
			delete(l.kept, v)
		}
	}
}

// compare looks at all arrays while the program rests. The second look is the one that promotes.
func (l *looker) compare(t *testing.T, run *harness.Run) {
	t.Helper()
	arrays := harness.Eval[[]struct {
		Kind     string
		Value    uint64
		Elements int
	}](t, run.Remote, "pause()")
	for range 3 {
		for i, a := range arrays {
			l.views[i] = refreshed(t, l.sources[i], l.views[i])
			v := l.views[i]
			if v.Route() == contract.RouteSharedHeap {
				l.shared[a.Kind] = true
			}
			got := slice[uint64](t, v)
			if wrong := slices.IndexFunc(got, func(x uint64) bool { return x != a.Value }); wrong >= 0 || len(got) != a.Elements {
				t.Fatalf("%v of a %s, %v %v: element %d is not %#x, of %d", v, a.Kind, v.Route(), v.Reason(), wrong, a.Value, a.Elements)
			}
			if v.Copied() != (v.Reason() != "") {
				t.Errorf("%v, copied: %v, %v", v, v.Copied(), v.Reason())
			}
		}
	}
	for v, before := range l.kept {
		for _, a := range arrays {
			if now := before.again(t, v); now.owner == a.Value>>32 && now.most > a.Value {
				t.Fatalf("a kept view of a %s shows %#x, and the program has %#x", a.Kind, now.most, a.Value)
			}
		}
	}
	run.Remote.Exec(t, "resume()")
}
