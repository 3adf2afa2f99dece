package e2e

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestViewsLeaveClassesAlone: a class that the program drops ends, though a view was taken through it, and a class
// that may have got its address is none that the view knows.
func TestViewsLeaveClassesAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ python, code, array, drop string }{
		"an attribute": {
			harness.Python(t), "class Base: pass\nclass Plug(Base): pass\nb = Plug(); b.w = np.full(20000, 7)", "b.w", "del b, Plug",
		},
		"a part of an attribute": {
			harness.Python(t), "class Base: pass\nclass Plug(Base): pass\nb = Plug(); b.c = {'w': np.full(20000, 7)}", `b.c["w"]`, "del b, Plug",
		},
		"a parameter": {
			harness.PythonAll(t), "import torch\nBase = torch.nn.Module\nclass Plug(Base):\n def __init__(self):\n  super().__init__()\n  self.w = torch.nn.Parameter(torch.full((20000,), 7.))\n" +
				" def __getattr__(self, name): return super().__getattr__(name)\nb = Plug()", "b.w", "del b, Plug",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, "import gc, weakref, numpy as np\nfin = []\n"+test.code+"\nweakref.finalize(Plug, fin.append, 1)\nimport remote\nremote.serve()\n", harness.Options{Python: test.python})
			harness.Eval[int](t, run.Remote, "1") // everything is there
			src, err := run.Source(test.array)
			if err != nil {
				t.Fatal(err)
			}
			v, _, err := src.Refresh(t.Context(), nil, hostplugin.NoWait())
			if err != nil {
				t.Fatal(err)
			}
			if _, changed, err := src.Refresh(t.Context(), v); err != nil || changed {
				t.Fatalf("Refresh = %v, %v", changed, err)
			}
			run.Remote.Exec(t, test.drop+"\ngc.collect()\nassert fin and all('Plug' not in str(c) for c in Base.__subclasses__()), fin")
			if _, _, err := src.Refresh(t.Context(), v); !errors.Is(err, core.ErrNotFound) {
				t.Errorf("Refresh = %v", err)
			}
			run.Remote.Exec(t, test.code)
			if next, _, err := src.Refresh(t.Context(), v); err != nil || next == v && v.Live() {
				t.Errorf("Refresh = %v", err)
			}
		})
	}
}

// TestRefreshOfMemoryThatCannotBeRead: an array's owner may have made it inaccessible, for a while.
func TestRefreshOfMemoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ctypes, numpy as np
protect = ctypes.CDLL(None).mprotect
a = np.arange(7000, dtype="i8")
other = np.arange(10)
page = (a.ctypes.data + 4095) & ~4095
import remote
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1") // everything is there
	src, err := run.Source("a")
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := src.Refresh(t.Context(), nil)
	if err != nil || !v.Copied() {
		t.Fatal(err)
	}
	if _, changed, err := src.Refresh(t.Context(), v); err != nil || changed {
		t.Fatalf("Refresh = %v, %v", changed, err)
	}
	run.Remote.Exec(t, "assert protect(ctypes.c_void_p(page), 8 * 4096, 0) == 0")
	if _, _, err := src.Refresh(t.Context(), v); !errors.Is(err, core.ErrPointer) {
		t.Errorf("Refresh = %v", err)
	}
	if o, err := run.Session.View(t.Context(), "other"); err != nil || o.Len() != 10 {
		t.Errorf("another array: %v", err)
	}
	run.Remote.Exec(t, "assert protect(ctypes.c_void_p(page), 8 * 4096, 3) == 0; a += 1; assert a.sum() == 7000 * 7001 // 2")
	v, _, err = src.Refresh(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := core.At[int64](v, 6999); err != nil || last != 7000 {
		t.Errorf("the last element: %d, %v", last, err)
	}
}
