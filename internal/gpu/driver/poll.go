package driver

import (
	"context"
	"runtime"
	"time"
)

const (
	// spin is how long Poll asks without a rest: as long as work takes that is nearly done.
	spin = 50 * time.Microsecond
	// The rests grow from the shortest to the longest.
	shortest = 20 * time.Microsecond
	longest  = 250 * time.Microsecond
)

// Poll waits until done reports true or fails, or until ctx ends. It returns the error of done or of ctx.
// The driver does not notify the CPU of what GPUs finish, so Poll asks again and again.
func Poll(ctx context.Context, done func() (bool, error)) error {
	if ok, err := done(); ok || err != nil {
		return err
	}
	for start := time.Now(); time.Since(start) < spin; runtime.Gosched() {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	rest := shortest
	timer := time.NewTimer(rest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		rest = min(2*rest, longest)
		timer.Reset(rest)
	}
}
