package e2e

import (
	"context"
	"strconv"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

func itoa(n int) string { return strconv.Itoa(n) }

// contextOfProcess is the context of a host that lives until it is killed.
func contextOfProcess() context.Context { return context.Background() }

// slice gives the elements of a view.
func slice[T core.Element](t *testing.T, view *core.View) []T {
	t.Helper()
	data, err := core.Slice[T](view)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eventually is harness.Eventually for Python: an expression that must become true.
func becomesTrue(t *testing.T, run *harness.Run, expression string) {
	t.Helper()
	harness.Eventually(t, harness.StartBound, expression, func() bool {
		return harness.Eval[bool](t, run.Remote, expression)
	})
}
