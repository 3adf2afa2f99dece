package export

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Idle waits until a device has done all that it was given until now, or until ctx ends: in the primary context, in each
// context that the exporter has had an array of, and in current, which may be 0. It waits for the end of captures, too. What a
// context has to do that has ended is never done, and not waited for. The error of one that is broken says so.
func (x *Exporter) Idle(ctx context.Context, device int, current driver.Context) error {
	queues, err := x.queuesOf(device, current)
	for _, q := range queues {
		if err == nil {
			if err = q.Synchronize(ctx); hasEnded(err) {
				err = ctx.Err()
			}
		}
		q.Close()
	}
	return err
}

// hasEnded reports whether an error is that of a context that is not there any more.
func hasEnded(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && (e.Code == driver.InvalidContext || e.Code == driver.ContextIsDestroyed)
}

// queuesOf gives a queue in each of these contexts. The caller closes them.
func (x *Exporter) queuesOf(device int, current driver.Context) (all []*Queue, err error) {
	q, err := x.QueueOn(device)
	switch {
	case err == nil:
		all = append(all, q)
	case !errors.Is(err, core.ErrDevice): // or nobody uses the primary context
		return nil, err
	}
	x.mu.Lock()
	var contexts []driver.Context
	for ctx, s := range x.states {
		if s.device.Index == device {
			contexts = append(contexts, ctx)
		}
	}
	x.mu.Unlock()
	if current != 0 && !slices.Contains(contexts, current) {
		contexts = append(contexts, current)
	}
	for _, ctx := range contexts {
		if len(all) > 0 && all[0].state.ctx == ctx {
			continue
		}
		if q, err := queueOf(x.stateOf(ctx, device)); err == nil { // or it has ended
			all = append(all, q)
		}
	}
	return all, nil
}
