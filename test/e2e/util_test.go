package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
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

// commands holds the command ndbridge, once a test has asked for it.
var commands = filepath.Join(os.TempDir(), "ndbridge-e2e-"+itoa(os.Getpid()))

var buildCommand = sync.OnceValues(func() (string, error) {
	file := filepath.Join(commands, "ndbridge")
	// As make builds it, so that all is compiled already.
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", file, "../../cmd/ndbridge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return file, build.Run()
})

// bridge gives the command ndbridge.
func bridge(t *testing.T) string {
	t.Helper()
	file, err := buildCommand()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// startedAndAttached runs a test with a program that the host starts, and with one that it attaches to.
func startedAndAttached(t *testing.T, test func(t *testing.T, attached bool)) {
	t.Helper()
	t.Parallel()
	for name, attached := range map[string]bool{"started": false, "attached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, attached)
		})
	}
}
