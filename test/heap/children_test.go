package heap

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestChildrenOfPython runs worker processes of every start method that overwrite the arrays they
// inherit, while the parent overwrites them too and somebody outside looks at the pages.
func TestChildrenOfPython(t *testing.T) {
	t.Parallel()
	for method, heap := range map[string]string{"fork": "on", "forkserver": "not loaded", "spawn": "not loaded"} {
		tasks := 6
		if method != "fork" { // each worker imports the frameworks
			tasks = 3
		}
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			type result struct {
				Sums    []float64 // that the workers saw, of both arrays
				Heap    []string  // what the workers say of their heap
				Parent  []float64 // what the parent's arrays hold afterwards
				Outside []float64 // what the files of the arrays hold afterwards
				Fresh   string    // where a new array lies
			}
			got := python[result](t, harness.PythonAll(t), nil, strings.NewReplacer("METHOD", method, "TASKS", strconv.Itoa(tasks)).Replace(`
import json, multiprocessing
import numpy as np, torch, ndheap

a = np.ones(1 << 17)
x = torch.ones(1 << 14, dtype=torch.float64)

def work(i):
    sums = float(a.sum() + x.sum())
    a[:] = 100 + i
    x.fill_(100 + i)
    b = np.full(1 << 18, 3.0)  # and goes on allocating
    assert (a == 100 + i).all() and (x == 100 + i).all() and b.sum() == 3 << 18
    return sums, ndheap.state() if ndheap.loaded() else "not loaded"

def main():
    pins = [ndheap.pin(a.ctypes.data), ndheap.pin(x.data_ptr())]
    with ndheap.mapped(pins[0]) as outside_a, ndheap.mapped(pins[1]) as outside_x:
        with multiprocessing.get_context("METHOD").Pool(2, maxtasksperchild=1) as pool:
            results = pool.map_async(work, range(TASKS), chunksize=1)
            seen = results.get(600)
        a[0] = x[0] = 5
        values = [float(v) for v in (outside_a.cast("B")[:8].cast("d")[0], outside_x.cast("B")[8:16].cast("d")[0])]
    fresh = np.ones(1 << 17)
    print(json.dumps(dict(sums=[s for s, _ in seen], heap=[h for _, h in seen], parent=[a[0], a[1], float(x[0]), float(x[1])],
                          outside=values, fresh=ndheap.where(fresh.ctypes.data))))

if __name__ == "__main__":
    main()
`))
			if len(got.Sums) != tasks || len(got.Heap) != tasks {
				t.Fatalf("%d workers answered: %+v", len(got.Sums), got)
			}
			for i := range got.Sums {
				if want := float64(1<<17 + 1<<14); got.Sums[i] != want || got.Heap[i] != heap {
					t.Errorf("a worker saw the sum %v, heap %q; want %v, %q", got.Sums[i], got.Heap[i], want, heap)
				}
			}
			if want := [4]float64{5, 1, 5, 1}; [4]float64(got.Parent) != want {
				t.Errorf("the parent's arrays hold %v, want %v", got.Parent, want)
			}
			// After a fork the pages outside stay as they were then; else they follow the parent.
			want := [2]float64{5, 1}
			if method == "fork" {
				want[0] = 1
			}
			if [2]float64(got.Outside) != want {
				t.Errorf("outside there is %v, want %v", got.Outside, want)
			}
			if got.Fresh != "heap" {
				t.Errorf("a new array lies in %q", got.Fresh)
			}
		})
	}
}
