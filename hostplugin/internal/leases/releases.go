package leases

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
)

const (
	// releaseDelay is how long a release waits for others, so that closing views one after the other makes few
	// calls.
	releaseDelay = time.Millisecond
	// releaseBatch is how many do not wait any longer.
	releaseBatch = 256
	// releaseTimeout bounds one call. A program that has not answered by then, because it is stopped or busy, is
	// asked again.
	releaseTimeout = 5 * time.Second
	// releaseSoon bounds how long a call that is under way is waited for by somebody who tells the program something after it.
	releaseSoon = 50 * time.Millisecond
)

// releases gives leases back in the background and in batches, so that closing a view costs no round trip, and wakes
// nobody. All methods are safe for concurrent use.
type releases struct {
	giveBack func(ctx context.Context, ids []contract.LeaseID) bool // whether that is done
	timer    *time.Timer
	sending  chan struct{} // holds a token during a call

	mu      sync.Mutex
	pending []contract.LeaseID
	closed  bool
}

func newReleases(giveBack func(ctx context.Context, ids []contract.LeaseID) bool) *releases {
	r := &releases{giveBack: giveBack, sending: make(chan struct{}, 1)}
	r.timer = time.AfterFunc(time.Hour, r.inTime)
	r.timer.Stop()
	return r
}

// inTime gives back what is pending.
func (r *releases) inTime() {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if !closed {
		r.flush(context.Background())
	}
}

// add queues the release of one lease.
func (r *releases) add(id contract.LeaseID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, id)
	switch len(r.pending) {
	case 1:
		r.after(releaseDelay)
	case releaseBatch:
		r.after(0)
	}
}

// after has what is pending given back. The lock is held.
func (r *releases) after(d time.Duration) {
	if !r.closed {
		r.timer.Reset(d)
	}
}

// flush gives back what is pending, and returns when that and what was under way before is done, or ctx has ended:
// then the rest is given back in the background.
func (r *releases) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	select {
	case r.sending <- struct{}{}:
		defer func() { <-r.sending }()
	case <-ctx.Done():
		r.again(nil)
		return
	}
	r.mu.Lock()
	ids := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(ids) > 0 && !r.giveBack(ctx, ids) {
		r.again(ids)
	}
}

// take takes what is pending, most at most, for somebody who tells the program in passing. What is given back just then is given back
// before, as far as that comes soon.
func (r *releases) take(ids []contract.LeaseID, most int) []contract.LeaseID {
	select {
	case r.sending <- struct{}{}:
		<-r.sending
	default:
		r.settle()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(most, len(r.pending))
	ids = append(ids, r.pending[:n]...)
	r.pending = slices.Delete(r.pending, 0, n)
	return ids
}

// settle waits for the call that is under way, for a moment.
func (r *releases) settle() {
	timer := time.NewTimer(releaseSoon)
	defer timer.Stop()
	select {
	case r.sending <- struct{}{}:
		<-r.sending
	case <-timer.C:
	}
}

// again has what was not given back given back later.
func (r *releases) again(ids []contract.LeaseID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(ids, r.pending...)
	r.after(releaseDelay)
}

// close ends the queue, and waits for the call that is under way. What is pending then is not given back.
func (r *releases) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.timer.Stop()
	r.sending <- struct{}{}
	<-r.sending
}
