//go:build cuda

package gpu

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
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

// TestUndisturbedLaunches has a program launch small work beside a host that looks now and then, or all the time, by
// views and by refreshes, with sync = "device", which is the default of these: no launch stalls.
func TestUndisturbedLaunches(t *testing.T) {
	for _, name := range []string{"driver", "torch", "cupy"} {
		if has(t, name) {
			t.Run(name, func(t *testing.T) { undisturbedLaunches(t, name) })
		}
	}
}

func undisturbedLaunches(t *testing.T, name string) {
	const enough, stall = 10, 100_000.0             // the last in microseconds
	slowTurns, fastTurns, launches := 31, 5, 20_000 // the fewer looks there are, the less differs
	if os.Getenv("CUDASIM_DEVICES") != "" {         // where each launch takes the CPU a while
		slowTurns, fastTurns, launches = 1, 1, 200
	}
	run := start(t, name, nil)
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); launches('a', %q, 1000)", firstKinds[name], firstKinds[name]))
	source, err := run.Source("a")
	if err != nil {
		t.Fatal(err)
	}
	var standing *core.View
	look := map[string]func() error{
		"views": func() error {
			view, err := run.Session.View(t.Context(), "a")
			if err != nil {
				return err
			}
			return view.Close()
		},
		"refreshes": func() (err error) {
			standing, _, err = source.Refresh(t.Context(), standing)
			return err
		},
	}
	defer func() {
		if standing != nil {
			standing.Close()
		}
	}()
	measure := func(function, more string) []float64 {
		return harness.Eval[[]float64](t, run.Remote, fmt.Sprintf("%s('a', %q, %d%s)", function, firstKinds[name], launches, more))
	}
	const slowly, pause, thread = ", one in 1.6 ms", 1600 * time.Microsecond, "nothing, but a thread of its own wakes in 1.6 ms"
	for _, by := range []string{thread, "views" + slowly, "refreshes" + slowly, "views", "refreshes"} {
		kind, rests := strings.CutSuffix(by, slowly)
		turns := fastTurns
		if rests || by == thread {
			turns = slowTurns
		}
		var alone, beside [][]float64
		var ratios []float64
		looks := 0
		for range turns {
			alone = append(alone, measure("launches", ""))
			if by == thread {
				beside = append(beside, measure("launches_beside_thread", fmt.Sprintf(", %v", pause.Seconds())))
			}
			done := make(chan []float64, 1)
			if len(alone) > len(beside) {
				go func() { done <- measure("launches", "") }()
			}
			for len(alone) > len(beside) {
				if err := look[kind](); err != nil {
					t.Fatal(err)
				}
				looks++
				if rests {
					<-time.After(pause)
				}
				select {
				case measured := <-done:
					beside = append(beside, measured)
				default:
				}
			}
			ratios = append(ratios, beside[len(beside)-1][1]/alone[len(alone)-1][1])
		}
		slices.Sort(ratios)
		row := &report.Row{Table: "Launches of a program (us) beside a host that looks: medians of turns"}
		row.Set("framework", name)
		row.Set("looks by", by)
		row.Set("turns", turns)
		row.Set("looks", looks)
		for i, what := range []string{"p50", "p99", "p99.9", "longest"} {
			a, b := middle(alone, i), middle(beside, i)
			row.Set(what+" alone", fmt.Sprintf("%.1f", a))
			row.Set(what+" beside looks", fmt.Sprintf("%.1f", b))
			if what == "p99" {
				row.Set("p99 ratio (goal: 1.2)", fmt.Sprintf("%.2f", b/a))
				row.Set("that of each turn", fmt.Sprintf("%.2f to %.2f", ratios[0], ratios[len(ratios)-1]))
			}
		}
		write(t, row)
		if longest := middle(beside, 3); longest > stall && longest > 2*middle(alone, 3) {
			t.Errorf("a launch took %.0f us beside %s, and %.0f us at most without", longest, by, middle(alone, 3))
		}
		if by != thread && looks < enough*turns/3 {
			t.Errorf("only %d %s: this proves nothing", looks, by)
		}
	}
}

// middle gives the median of one of the figures of each turn.
func middle(turns [][]float64, figure int) float64 {
	var all []float64
	for _, turn := range turns {
		all = append(all, turn[figure])
	}
	slices.Sort(all)
	return all[len(all)/2]
}
