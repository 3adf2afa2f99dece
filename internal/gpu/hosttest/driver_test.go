//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// writeTo lets the driver write to an address of device 0.
func writeTo(addr uintptr) error {
	g, err := gpu.Open(0)
	if err != nil {
		return err
	}
	return errors.Join(g.Do(func() error { return driver.MemsetD8Async(addr, 1, 1, 0) }), g.Close())
}

// letGo returns when the driver has what was given back: streams of other tests may wait for programs.
func letGo(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := gpu.Streams.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}
