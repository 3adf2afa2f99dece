package program

import (
	"context"

	"github.com/ndbridge/ndbridge/adapters/kit"
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
	a.waited = &kit.Array{Addr: r.array.Addr, Layout: r.array.Layout}
	a.pause = func() error { return a.slowly(ctx, wait) }
	return nil
}

// slowly calls f, which may wait for a GPU. In a hurry f gives up at once. Otherwise it does so a little before the call's
// deadline, so that the caller hears what it waited for.
func (a *granting) slowly(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := patience(ctx)
	defer cancel()
	if a.hurry {
		cancel()
	}
	return f(ctx)
}
