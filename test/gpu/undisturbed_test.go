//go:build cuda

package gpu

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/gpu/report"
)

// TestUndisturbedSmallArrays takes views of small arrays, each of another size, which the program frees one after
// the other: the next one may lie where the host still has memory of the last one open.
func TestUndisturbedSmallArrays(t *testing.T) {
	for _, name := range []string{"driver", "pycuda", "numba"} {
		if has(t, name) {
			t.Run(name, func(t *testing.T) { smallArrays(t, name) })
		}
	}
}

func smallArrays(t *testing.T, name string) {
	const views = 60
	run := start(t, name, nil)
	run.Remote.Exec(t, "make_small('kept', 12, 0)") // the block that small arrays come from stays
	for i := range views {
		run.Remote.Exec(t, fmt.Sprintf("make_small('x', %d, %d)", 100+(i*7919)%4000, i))
		view := run.View(t, "x")
		if view.Route() != contract.RouteCUDAIPC {
			t.Errorf("view %d came by route %v", i, view.Route())
		}
		all(t, fmt.Sprintf("array %d", i), contents(t, view), float32(i))
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
		run.NoLeases(t)
	}
	row := &report.Row{Table: "Small arrays of changing size, freed one after the other"}
	row.Set("framework", name)
	row.Set("views", fmt.Sprintf("%d, none refused", views))
	write(t, row)
}
