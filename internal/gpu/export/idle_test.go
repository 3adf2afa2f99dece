//go:build cuda

package export_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// TestIdle waits until the GPU has done what it was given, whatever the stream.
func TestIdle(t *testing.T) { //nolint:paralleltest // others load code, which waits for all streams
	p := newProgram(t)
	p.work(p.slow, 50e6)
	p.work(p.fast, 30e6)
	check(t, p.Idle(t.Context(), 0, 0))
	if !p.idle(p.slow) || !p.idle(p.fast) {
		t.Error("a stream still works")
	}
}

// TestIdleOfBrokenContext says that a kernel has failed: who waits for the GPU would be told otherwise that everything was done. The
// driver is of no use to its process any more then.
func TestIdleOfBrokenContext(t *testing.T) {
	t.Parallel()
	const child = "NDBRIDGE_TEST_BREAKS_CONTEXT"
	if os.Getenv(child) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIdleOfBrokenContext$")
		command.Env = append(os.Environ(), child+"=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	p := newProgram(t)
	const nowhere = 8
	one := driver.Dim{X: 1, Y: 1, Z: 1}
	p.do(func() error { return driver.LaunchKernel(p.add, one, one, 0, p.slow, []uint64{nowhere, 1, 0, 0}) })
	err := p.Idle(t.Context(), 0, 0)
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Code != driver.IllegalAddress {
		t.Fatalf("behind a kernel that writes to no memory: %v", err)
	}
	os.Exit(0) // nothing can be given back
}
