package engine

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/core"
)

// await waits for GPUs that may be writing host memory.
func (a *granting) await(ctx context.Context, r *reading) error {
	if r.array.Pointer == nil || a.waited != nil && a.waited.Addr == r.array.Addr {
		return nil
	}
	wait, err := a.program.router.Await(r.array, r.takeOrder())
	if wait == nil {
		return err
	}
	a.waited = &routes.Array{Addr: r.array.Addr, Layout: r.array.Layout}
	a.pause = func() error { return a.slowly(ctx, wait) }
	return nil
}

// maxWaiting is how many looks may wait for a GPU on the threads that enter Python, of which there are eight: so others are
// left for looks that need not wait.
const maxWaiting = 4

// errCrowded says that too many looks wait for a GPU already: this one is to be tried again, from outside of Python.
var errCrowded = errors.New("as many looks as may wait for work on a GPU")

// crowded is the error of a look that has found so many.
func crowded(kind error) error {
	return &core.Error{Kind: kind, Err: errCrowded, Remedy: "look again when that work is done"}
}

// slowly calls f, which may wait for a GPU. In a hurry f gives up at once. Otherwise it does so a little before the call's
// deadline, so that the caller hears what it waited for. Where too many wait, it gives up, with errCrowded.
func (a *granting) slowly(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := patience(ctx)
	defer cancel()
	full := false
	if a.waiting != nil {
		select {
		case a.waiting <- struct{}{}:
			defer func() { <-a.waiting }()
		default:
			full = true
		}
	}
	if a.hurry || full {
		cancel()
	}
	err := f(ctx)
	if full && errors.Is(err, context.Canceled) {
		return crowded(core.ErrUnavailable)
	}
	return err
}
