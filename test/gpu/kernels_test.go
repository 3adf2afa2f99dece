//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestKernelWrites has a kernel of the host add to arrays of the program, which sees the sums.
func TestKernelWrites(t *testing.T) {
	for _, f := range frameworks(t) {
		kinds := slices.DeleteFunc(slices.Clone(f.kinds), func(k kind) bool {
			return contract.Copied(k.routes[0]) || slices.Contains(k.routes, contract.RouteMappedFile) // not the program's memory, or not a GPU's
		})
		if len(kinds) == 0 {
			continue
		}
		t.Run(f.title(), func(t *testing.T) {
			run := start(t, f.name, f.env)
			for _, k := range kinds {
				row := &report.Row{Table: "A kernel launched from Go adds 41 to an array of ones"}
				row.Set("framework", f.title())
				row.Set("memory", k.name)
				passed := t.Run(k.name, func(t *testing.T) { writeByKernel(t, run, f, k, row) })
				row.Set("result", resultText(passed))
				write(t, row)
			}
		})
	}
}

func writeByKernel(t *testing.T, run *harness.Run, f framework, k kind, row *report.Row) {
	t.Helper()
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1)", k.name))
	if f.made { // its arrays are never written, so nobody is given one to write to
		_, err := run.Session.View(t.Context(), `arrays["a"]`, hostplugin.Writable())
		row.Set("a writable view", core.Category(err))
		if !errors.Is(err, core.ErrReadOnly) && !errors.Is(err, core.ErrNotShared) { // the latter: it would be a copy
			t.Errorf("a writable view of an array that is never written: %v, want ErrReadOnly or ErrNotShared", err)
		}
		writeCopy(t, run, row)
		return
	}
	view := run.View(t, `arrays["a"]`, hostplugin.Writable())
	row.Set("route", view.Route())
	g := newKernels(t)
	g.launchAdd(t, view, 41)
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, bound, "the kernel is done, so the lease is given back", func() bool { return run.Leases(t) == 0 })
	seen := harness.Eval[[]float32](t, run.Remote, "contents('a')")
	row.Set("the program sees", seen)
	if seen[0] != 42 || seen[1] != 42 {
		t.Errorf("the program sees elements from %v to %v, want 42", seen[0], seen[1])
	}
}

// writeCopy has a kernel make a sum of an array in host memory that the program sees, too.
func writeCopy(t *testing.T, run *harness.Run, row *report.Row) {
	t.Helper()
	view := run.View(t, `arrays["a"]`)
	row.Set("route", view.Route())
	run.Remote.Exec(t, "make_result()")
	result := run.View(t, "result", hostplugin.Writable())
	pinned(t, result)
	g := newKernels(t)
	g.copyAfter(t, result, view, 0)
	g.finish(t)
	g.launchAdd(t, result, 41)
	if err := g.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := harness.Eval[[]float32](t, run.Remote, "[float(result.min()), float(result.max())]")
	row.Set("the program sees", fmt.Sprintf("%v in its numpy array that the kernel wrote", seen))
	if seen[0] != 42 || seen[1] != 42 {
		t.Errorf("the program sees elements from %v to %v, want 42", seen[0], seen[1])
	}
	if data := contents(t, view); data[0] != 1 {
		t.Errorf("the array itself now holds %v", data[0])
	}
}

// launchAdd has a kernel add to a view, after whoever writes to it.
func (k *kernels) launchAdd(t *testing.T, v *core.View, amount float32) {
	t.Helper()
	if err := k.add.Launch(k.Stream, config, v, uint64(count), amount, uint64(0)); err != nil {
		t.Fatal(err)
	}
}
