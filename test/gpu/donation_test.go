//go:build cuda

package gpu

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestUndisturbedDonation has JAX donate its state in a loop beside a host that looks at it all the time: the program
// sees no error, and nothing is printed. Where the host holds the state itself, the program does see errors.
func TestUndisturbedDonation(t *testing.T) {
	if !has(t, "jax") {
		return
	}
	for _, effect := range []string{"copy", "hold"} {
		t.Run(effect, func(t *testing.T) { undisturbedDonation(t, effect) })
	}
}

func undisturbedDonation(t *testing.T, effect string) {
	const seconds = 3
	run := start(t, "jax", map[string]string{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, func(c *hostplugin.Config) {
		c.Adapters = append(c.Adapters, hostplugin.Adapter{
			Name: "jax", Quirks: []hostplugin.QuirkSetting{{ID: "jax.may-be-donated", Effect: effect}},
		})
	})
	run.Remote.Exec(t, "framework.donate(arrays, 0)")
	view := run.View(t, "state")
	if (view.Reason() == contract.ReasonMayBeDonated) != (effect == "copy") {
		t.Errorf("the state came by %v, because of %q", view.Route(), view.Reason())
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	alone := harness.Eval[[]any](t, run.Remote, fmt.Sprintf("framework.donate(arrays, %d)", seconds))
	done := make(chan []any, 1)
	go func() {
		done <- harness.Eval[[]any](t, run.Remote, fmt.Sprintf("framework.donate(arrays, %d)", seconds))
	}()
	for looks, seen := 0, 0; ; looks++ {
		if view, err := run.Session.View(t.Context(), "state"); err == nil { // else it was just donated
			seen++
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case beside := <-done:
			row := &report.Row{Table: "A loop of JAX that donates its state, beside a host that looks all the time"}
			row.Set("effect", effect)
			row.Set("looks", looks)
			row.Set("views", seen)
			row.Set("steps alone", alone[0])
			row.Set("steps beside looks", beside[0])
			row.Set("errors", beside[1])
			row.Set("the last one", beside[2])
			write(t, row)
			if (beside[1] != 0.0) != (effect == "hold") {
				t.Errorf("%v errors in the program: %v", beside[1], beside[2])
			}
			if effect == "copy" && run.Log.Contains("ExecutePrepareWithOomRetries") {
				t.Error("a copy that came too late was printed about")
			}
			if seen == 0 {
				t.Error("no view: this proves nothing")
			}
			return
		default:
		}
	}
}
