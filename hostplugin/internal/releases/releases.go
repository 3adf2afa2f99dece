// Package releases gives leases back in the background and in batches, so that closing a view costs no
// round trip.
package releases

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// delay is how long a release waits for a request that takes it along, and for others, so that a host
	// that looks at array after array makes few calls for it, or none. It may wait twice as long.
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

	ended   [2]atomic.Uint64 // Taken calls of each turn
	awaited atomic.Bool      // somebody waits, or is about to wait, until there are as many as in taken

	mu      sync.Mutex
	seen    uint64           // Take calls, when moving was last called
	turn    int              // 0 or 1: changes with each Flush
	taken   [2]uint64        // Take calls of each turn
	back    [2]chan struct{} // closed when each has had its Taken; nil: nobody waits for that
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
		for moving := true; moving; {
			timer.Reset(delay)
			select {
			case <-timer.C:
				moving = q.moving()
			case <-q.full:
				moving = false
			case <-q.stop:
				return
			}
		}
		q.Flush(context.Background())
	}
}

// moving reports whether requests have taken something along since the last time it was called: what is
// pending now has come after that, and the next request may soon come.
func (q *Queue) moving() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	takes := q.taken[0] + q.taken[1]
	moving := takes != q.seen
	q.seen = takes
	return moving
}

// Take moves pending releases behind buf, as many as it has room for: they go with a request that is
// made anyway. Each Take is followed by one Taken with the same turn.
func (q *Queue) Take(buf []core.LeaseID) (ids []core.LeaseID, turn int) {
	q.mu.Lock()
	turn = q.turn
	q.taken[turn]++
	n := min(cap(buf)-len(buf), len(q.pending))
	buf = append(buf, q.pending[:n]...)
	q.pending = q.pending[:copy(q.pending, q.pending[n:])]
	q.mu.Unlock()
	return buf, turn
}

// Taken says whether what was taken has been given back. If not, it is pending again: to give it back
// twice does no harm.
func (q *Queue) Taken(ids []core.LeaseID, turn int, done bool) {
	if !done && len(ids) > 0 {
		q.mu.Lock()
		q.pending = append(q.pending, ids...)
		q.mu.Unlock()
		signal(q.wake)
	}
	q.ended[turn].Add(1)
	if !q.awaited.Load() {
		return // who says that he waits looks at ended after that
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.back[turn] != nil && q.isBack(turn) {
		close(q.back[turn])
		q.back[turn] = nil
		q.awaited.Store(q.back[1-turn] != nil)
	}
}

// isBack reports whether all that was taken in a turn has had its Taken. The caller holds the lock.
func (q *Queue) isBack(turn int) bool { return q.ended[turn].Load() == q.taken[turn] }

// awaitTaken waits for all that is taken now, but not for what is taken meanwhile.
func (q *Queue) awaitTaken(ctx context.Context) {
	q.mu.Lock()
	turn := q.turn
	q.awaited.Store(true)
	if !q.isBack(turn) && q.back[turn] == nil {
		q.back[turn] = make(chan struct{})
	}
	back := q.back[turn]
	q.awaited.Store(q.back[0] != nil || q.back[1] != nil)
	q.turn = 1 - turn
	q.mu.Unlock()
	if back == nil {
		return
	}
	select {
	case <-back:
	case <-ctx.Done():
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
	q.awaitTaken(ctx)
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
