// Package poll waits for what GPUs do, of which nobody tells the CPU.
package poll

import (
	"context"
	"runtime"
	"time"
)

const (
	// spin is how long it is looked for without a rest: as long as work takes that is nearly done.
	spin = 50 * time.Microsecond
	// The rests grow from the shortest to the longest.
	shortest = 20 * time.Microsecond
	longest  = 250 * time.Microsecond
)

// Until returns when done says so, with its error, or when ctx ends, with the error of that.
func Until(ctx context.Context, done func() (bool, error)) error {
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
