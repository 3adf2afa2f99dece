// Package releases gives leases back in the background and in batches, so that closing a view costs no
// round trip.
package releases

import (
	"context"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// delay is how long a release may wait for others, so that a host that looks at array after array
	// makes few calls for it.
	delay = time.Millisecond
	// batch is how many do not wait any longer.
	batch = 256
	// timeout bounds one call.
	timeout = 5 * time.Second
)

// Releaser gives leases back: the part of core.Producer that this package needs.
type Releaser interface {
	Release(ctx context.Context, ids ...core.LeaseID) error
}

// Queue is what is to be given back. All methods are safe for concurrent use.
type Queue struct {
	producer Releaser
	wake     chan struct{} // something is pending
	full     chan struct{} // a batch is pending
	stop     chan struct{}
	stopped  chan struct{}

	sending chan struct{} // holds a token during a call

	mu      sync.Mutex
	pending []core.LeaseID
	spare   []core.LeaseID // the memory of the last call's
}

// New makes an empty queue. It must be closed.
func New(producer Releaser) *Queue {
	q := &Queue{
		producer: producer,
		wake:     make(chan struct{}, 1),
		full:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
		sending:  make(chan struct{}, 1),
	}
	go q.run()
	return q
}

// Add queues the release of one lease.
func (q *Queue) Add(id core.LeaseID) {
	q.mu.Lock()
	q.pending = append(q.pending, id)
	n := len(q.pending)
	q.mu.Unlock()
	switch n {
	case 1:
		signal(q.wake)
	case batch:
		signal(q.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (q *Queue) run() {
	defer close(q.stopped)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-q.wake:
		case <-q.stop:
			return
		}
		timer.Reset(delay)
		select {
		case <-timer.C:
		case <-q.full:
		case <-q.stop:
			return
		}
		q.Flush(context.Background())
	}
}

// Flush gives back what is pending, and returns when that and what was under way before is done.
func (q *Queue) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case q.sending <- struct{}{}:
		defer func() { <-q.sending }()
	case <-ctx.Done():
		return
	}
	q.mu.Lock()
	ids := q.pending
	q.pending = q.spare[:0]
	q.mu.Unlock()
	if len(ids) > 0 {
		// It fails only if the session ends, which releases everything.
		_ = q.producer.Release(ctx, ids...)
	}
	q.mu.Lock()
	q.spare = ids
	q.mu.Unlock()
}

// Close ends the queue. What is pending then is not given back. It is called once.
func (q *Queue) Close() {
	close(q.stop)
	<-q.stopped
}
