//go:build cuda

package hosttest

import (
	"errors"

	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// writeTo lets the driver write to an address of device 0.
func writeTo(addr uintptr) error {
	g, err := primary.Open(0)
	if err != nil {
		return err
	}
	return errors.Join(g.Do(func() error { return driver.MemsetD8Async(addr, 1, 1, 0) }), g.Close())
}
