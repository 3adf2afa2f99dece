//go:build cuda

package gpu

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestKnownAgain takes views of one name while others stand, so that the program could take what it is now
// for what it was: each waits for the work that was queued before it, and shows what the name means then. So
// does a view that is refreshed.
func TestKnownAgain(t *testing.T) {
	for _, f := range frameworks(t) {
		if firstKinds[f.name] != "" && f.env == nil {
			t.Run(f.name, func(t *testing.T) { knownAgain(t, f) })
		}
	}
	if has(t, "pycuda") { // the others free nothing that is in use, and let no property count
		t.Run("freed by hand", knownAgainFreed)
		t.Run("asked once", knownAgainOnce)
	}
}

func knownAgain(t *testing.T, f framework) {
	run := start(t, f.name, nil)
	kind := firstKinds[f.name]
	var open []*core.View
	source, err := run.Source("a")
	if err != nil {
		t.Fatal(err)
	}
	var standing *core.View // which is refreshed
	refresh := func(what string, want float32, unchanged bool) {
		t.Helper()
		view, changed, err := source.Refresh(t.Context(), standing)
		if err != nil || unchanged && (changed || view != standing) {
			t.Errorf("%s, refreshed: %v, changed: %v, %v", what, view, changed, err)
		}
		standing = view
		all(t, what+", refreshed", contents(t, standing), want)
	}
	look := func(what string, want float32) {
		t.Helper()
		view := run.View(t, "a")
		open = append(open, view)
		all(t, what, contents(t, view), want)
		refresh(what, want, false)
	}
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1)", kind))
	look("the first view", 1)
	look("the next one", 1)
	for value := 2; value < 6; value++ {
		run.Remote.Exec(t, fmt.Sprintf("write_late('a', %q, %d)", kind, value))
		ran := harness.Eval[bool](t, run.Remote, "running('a')")
		look("a view behind work", float32(value))
		if !ran && !f.prompt {
			t.Error("the work was over before the view was asked for: this proves nothing")
		}
		look("one after it", float32(value))
		run.Remote.Exec(t, fmt.Sprintf("write_late('a', %q, %d)", kind, value+10))
		refresh("the same one behind work", float32(value+10), !f.made)
	}
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 7)", kind)) // the old one stands, held by views
	look("another array", 7)
	run.Remote.Exec(t, fmt.Sprintf("make('b', %q, 8); other = a; a = b", kind))
	look("a name that means another one", 8)
	run.Remote.Exec(t, "a = other")
	look("and again the first", 7)
	closeAll := func() {
		for _, view := range append(open, standing) {
			if err := view.Close(); err != nil {
				t.Error(err)
			}
		}
		open, standing = nil, nil
		run.NoLeases(t)
	}
	closeAll()
	look("a view when none stood", 7)
	closeAll()
}

// knownAgainFreed: memory that a program frees by hand, while views of it stand, is not taken for what
// it was when another allocation has its address.
func knownAgainFreed(t *testing.T) {
	run := start(t, "pycuda", nil)
	run.Remote.Exec(t, "make('a', 'mem_alloc', 1)")
	first := run.View(t, "a")
	all(t, "the first view", contents(t, first), 1)
	run.Remote.Exec(t, `
before = framework.address(a)
a.gpudata.free()
fresh = framework.make("mem_alloc")
same = framework.address(fresh) == before
framework.write("mem_alloc", fresh, 2)
synchronize()
`)
	same := harness.Eval[bool](t, run.Remote, "same")
	view, err := run.Session.View(t.Context(), "a")
	if same != (err == nil) || err != nil && !errors.Is(err, core.ErrPointer) {
		t.Errorf("another allocation has the address: %v; a view: %v, want one, or else ErrPointer", same, err)
	}
	if err == nil {
		all(t, "what has the address now", contents(t, view), 2)
		if err := view.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	said(t, "an array's memory is freed by hand while a view of it stands, and another allocation follows", err)
}

// knownAgainOnce: to refresh a view of what has not changed, the array is not asked for its protocols.
func knownAgainOnce(t *testing.T) {
	run := start(t, "pycuda", nil)
	run.Remote.Exec(t, `
make("a", "mem_alloc", 1)
asked = 0
class_of, told = type(a), type(a).__cuda_array_interface__.fget

def count(array):
    global asked
    asked += 1
    return told(array)

class_of.__cuda_array_interface__ = property(count)
`)
	source, err := run.Source("a")
	if err != nil {
		t.Fatal(err)
	}
	view, err := source.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	const times = 20
	before := harness.Eval[int](t, run.Remote, "asked")
	for range times {
		if next, changed, err := source.Refresh(t.Context(), view); err != nil || changed || next != view {
			t.Fatalf("refreshed: %v, changed: %v, %v", next, changed, err)
		}
	}
	// A busy machine may make the mailbox give up, so not every time must have been one of these.
	if asked := harness.Eval[int](t, run.Remote, "asked") - before; before == 0 || asked > times/2 {
		t.Errorf("the array was asked %d times for the first view and %d times for %d refreshes", before, asked, times)
	}
}
