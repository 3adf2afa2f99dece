package driver

import (
	"context"
	"runtime"
	"time"
)

const (
	// spin is how long Poll asks without a rest: so long that the shortest rest, which takes the system 60 µs and more, is a
	// small part of it.
	spin = 500 * time.Microsecond
	// The rests grow from the shortest to the longest.
	shortest = 20 * time.Microsecond
	longest  = 250 * time.Microsecond
)

// Poll waits until done reports true or fails, or until ctx ends. It returns the error of done or of ctx.
// The driver does not notify the CPU of what GPUs finish, so Poll asks again and again.
func Poll(ctx context.Context, done func() (bool, error)) error {
	return poll(ctx, done, runtime.Gosched)
}

// PollLocked is Poll for a goroutine that is locked to its thread: to let others run, Go would have to switch to another thread and back.
func PollLocked(ctx context.Context, done func() (bool, error)) error {
	return poll(ctx, done, func() {})
}

func poll(ctx context.Context, done func() (bool, error), pause func()) error {
	if ok, err := done(); ok || err != nil {
		return err
	}
	for start := time.Now(); time.Since(start) < spin; pause() {
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
