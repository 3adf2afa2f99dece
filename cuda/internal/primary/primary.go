// Package primary holds the primary contexts of GPUs: those that the CUDA runtime, and with it nearly
// every library, works in.
package primary

import (
	"sync/atomic"

	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// GPU is a device whose primary context is kept alive. All methods are safe for concurrent use.
type GPU struct {
	Device  driver.Device
	Context driver.Context
	closed  atomic.Bool
}

// Open keeps the primary context of a device alive until Close, making it if nobody has: then that
// takes a good part of a second.
func Open(index int) (*GPU, error) {
	d := driver.Device(index) //nolint:gosec // the caller has it from the driver
	ctx, err := driver.PrimaryCtxRetain(d)
	if err != nil {
		return nil, err
	}
	return &GPU{Device: d, Context: ctx}, nil
}

// Do runs f on one thread on which the context is current.
func (g *GPU) Do(f func() error) error { return driver.With(g.Context, f) }

// Close lets go of the context. If nobody else keeps it, it ends with all that is in it. Close is
// idempotent.
func (g *GPU) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	return driver.PrimaryCtxRelease(g.Device)
}
