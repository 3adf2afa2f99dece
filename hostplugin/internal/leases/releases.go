package leases

import (
	"context"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
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
)

// releases gives leases back in the background and in batches, so that closing a view costs no round trip.
// All methods are safe for concurrent use.
type releases struct {
	giveBack func(ctx context.Context, ids []core.LeaseID) bool // whether that is done
	wake     chan struct{}                                      // something is pending
	full     chan struct{}                                      // a batch is pending
	stop     chan struct{}
	stopped  chan struct{}
	sending  chan struct{} // holds a token during a call

	mu      sync.Mutex
	pending []core.LeaseID
}

func newReleases(giveBack func(ctx context.Context, ids []core.LeaseID) bool) *releases {
	r := &releases{
		giveBack: giveBack, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), stop: make(chan struct{}),
		stopped: make(chan struct{}), sending: make(chan struct{}, 1),
	}
	go r.run()
	return r
}

// add queues the release of one lease.
func (r *releases) add(id core.LeaseID) {
	r.mu.Lock()
	r.pending = append(r.pending, id)
	n := len(r.pending)
	r.mu.Unlock()
	switch n {
	case 1:
		signal(r.wake)
	case releaseBatch:
		signal(r.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *releases) run() {
	defer close(r.stopped)
	for {
		select {
		case <-r.wake:
		case <-r.stop:
			return
		}
		select {
		case <-time.After(releaseDelay):
		case <-r.full:
		case <-r.stop:
			return
		}
		r.flush(context.Background())
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
		signal(r.wake)
		return
	}
	r.mu.Lock()
	ids := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(ids) == 0 || r.giveBack(ctx, ids) {
		return
	}
	r.mu.Lock()
	r.pending = append(ids, r.pending...)
	r.mu.Unlock()
	signal(r.wake)
}

// close ends the queue. What is pending then is not given back. It is called once.
func (r *releases) close() {
	close(r.stop)
	<-r.stopped
}
