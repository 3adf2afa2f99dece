//go:build cuda

package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCostsOfCalls measures a function of PyTorch with 64 MiB on the GPU in and out: called by the host, and in its own process,
// in turns. Both wait until the GPU is done.
func TestCostsOfCalls(t *testing.T) {
	if !has(t, "torch") {
		return // which the report says of all that is measured with it
	}
	run := start(t, "torch", nil)
	run.Remote.Exec(t, "import called, called_in_process")
	const elements, perTurn = 16 << 20, 50
	c := &called{run: run, as: "torch"}
	x, err := run.NewOn(gpu0, core.Float32, elements)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	empty, twice := c.function(t, "nothing"), c.function(t, "twice")
	took := map[string][]time.Duration{}
	call := func(what string, f *hostplugin.Func, args ...any) {
		for range perTurn {
			begun := time.Now()
			result, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			took[what] = append(took[what], time.Since(begun))
			if err := result.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	const fromHost, alone, noArray, argument = "twice(x), called by the host", "twice(x), in its own process", "nothing()", "nothing(x)"
	for turn := range 1 + rounds {
		call(noArray, empty)
		call(argument, empty, x)
		call(fromHost, twice, x)
		for _, micros := range harness.Eval[[]float64](t, run.Remote, fmt.Sprintf("called_in_process.twice(%d, %d)", elements, perTurn)) {
			took[alone] = append(took[alone], time.Duration(micros*float64(time.Microsecond)))
		}
		if turn == 0 {
			clear(took) // what comes first costs more
		}
	}
	for _, what := range []string{noArray, argument, alone, fromHost} {
		row := &report.Row{Table: "A function of PyTorch with 64 MiB on the GPU in and out"}
		row.Set("call", what)
		setQuantiles(row, took[what])
		write(t, row)
	}
}
