package hostplugin

import (
	"context"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// releaseDelay is how long a release may wait for others, so that a host that looks at array after
	// array makes few calls for it.
	releaseDelay = time.Millisecond
	// releaseBatch is how many do not wait any longer.
	releaseBatch = 256
	// releaseTimeout bounds one call.
	releaseTimeout = 5 * time.Second
)

// releaser gives leases back in the background, so that closing a view costs no round trip.
type releaser struct {
	producer core.Producer
	wake     chan struct{} // something is pending
	full     chan struct{} // a batch is pending
	stop     chan struct{}
	stopped  chan struct{}

	sending chan struct{} // holds a token during a call

	mu      sync.Mutex
	pending []core.LeaseID
	spare   []core.LeaseID // the memory of the last call's
}

func newReleaser(producer core.Producer) *releaser {
	r := &releaser{
		producer: producer,
		wake:     make(chan struct{}, 1),
		full:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
		sending:  make(chan struct{}, 1),
	}
	go r.run()
	return r
}

// add queues the release of one lease.
func (r *releaser) add(id core.LeaseID) {
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

func (r *releaser) run() {
	defer close(r.stopped)
	delay := time.NewTimer(releaseDelay)
	defer delay.Stop()
	for {
		select {
		case <-r.wake:
		case <-r.stop:
			return
		}
		delay.Reset(releaseDelay)
		select {
		case <-delay.C:
		case <-r.full:
		case <-r.stop:
			return
		}
		r.flush(context.Background())
	}
}

// flush gives back what is pending, and returns when that and what was under way before is done.
func (r *releaser) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	select {
	case r.sending <- struct{}{}:
		defer func() { <-r.sending }()
	case <-ctx.Done():
		return
	}
	r.mu.Lock()
	ids := r.pending
	r.pending = r.spare[:0]
	r.mu.Unlock()
	if len(ids) > 0 {
		// It fails only if the session ends, which releases everything.
		_ = r.producer.Release(ctx, ids...)
	}
	r.mu.Lock()
	r.spare = ids
	r.mu.Unlock()
}

// close ends the releaser. What is pending then is not given back.
func (r *releaser) close() {
	close(r.stop)
	<-r.stopped
}
