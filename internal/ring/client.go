package ring

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed says that the other side serves no more, or that Close was called.
var ErrClosed = errors.New("the ring is closed")

// ErrSlow says that the other side has not answered within the client's limit.
var ErrSlow = errors.New("no answer in time")

// look is how often a sleeping caller looks whether its context or the ring has ended.
const look = 2 * time.Millisecond

// Client is the side that asks. All methods are safe for concurrent use.
type Client struct {
	bell, asleep, cpu, closed *atomic.Uint32

	lanes       []Lane
	spin, limit time.Duration
	abandoned   func(answer []byte)

	free    atomic.Uint64 // a bit for each lane that nobody has
	waiting atomic.Int32  // those who wait for one
	freed   chan struct{} // wakes them

	dead  atomic.Bool
	close sync.Once
	mu    sync.Mutex
	stale uint64 // lanes whose callers did not wait for the answer
}

// Lane is one request's part of the ring. Whoever has got it from [Client.Acquire] has it alone, until
// Release.
type Lane struct {
	Index int // from 0

	client *Client
	shared lane
	number uint32 // of the last request
	answer []byte // private memory
}

// NewClient uses the memory of a ring that another process serves. Callers look for their answer for
// as long as spin before they sleep, and wait for it, and before for a lane, for limit each. abandoned is
// called, from whatever goroutine notices it, with the answer to a request whose caller had given up; it
// must not call back.
func NewClient(mem []byte, spin, limit time.Duration, abandoned func(answer []byte)) (*Client, error) {
	lanes, err := lanesOf(mem)
	if err != nil {
		return nil, err
	}
	c := &Client{
		bell: word(mem, offBell), asleep: word(mem, offAsleep), cpu: word(mem, offCPU), closed: word(mem, offClosed),
		lanes: make([]Lane, lanes), freed: make(chan struct{}, lanes), spin: spin, limit: limit, abandoned: abandoned,
	}
	for i := range lanes {
		c.lanes[i] = Lane{Index: i, client: c, shared: laneAt(mem, i), answer: make([]byte, MaxAnswer)}
	}
	c.free.Store(c.all())
	return c, nil
}

// all has a bit for each lane.
func (c *Client) all() uint64 { return 1<<len(c.lanes) - 1 }

// Lanes is how many requests may be under way at once.
func (c *Client) Lanes() int { return len(c.lanes) }

// Close ends the calls that are under way, and waits until all lanes were released. The memory may be
// unmapped when it has returned. It is idempotent.
func (c *Client) Close() {
	c.close.Do(func() {
		c.dead.Store(true)
		c.waiting.Add(1)
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for back := uint64(0); ; {
			c.mu.Lock()
			back |= c.free.Swap(0) | c.stale
			c.stale = 0
			c.mu.Unlock()
			if back == c.all() {
				return
			}
			select {
			case <-c.freed:
			case <-ticker.C:
			}
		}
	})
}

// ended reports whether no more is served. Only who has a lane may call it, for which Close waits: to others
// the memory may be gone, and they call over.
func (c *Client) ended() bool { return c.dead.Load() || c.closed.Load() != 0 }

// over is ended for all.
func (c *Client) over() bool {
	c.mu.Lock() // Close waits for it once it has begun
	defer c.mu.Unlock()
	return c.ended()
}

// Acquire takes a lane for one request. If all are in use it waits for one. The error is [ErrClosed],
// [ErrSlow] or that of ctx.
func (c *Client) Acquire(ctx context.Context) (*Lane, error) {
	if c.dead.Load() {
		return nil, ErrClosed
	}
	l := c.take()
	if l == nil {
		var err error
		if l, err = c.await(ctx); err != nil {
			return nil, err
		}
	}
	if c.ended() {
		l.Release()
		return nil, ErrClosed
	}
	return l, nil
}

// take takes a lane that nobody has, or gives nil.
func (c *Client) take() *Lane {
	for free := c.free.Load(); free != 0; free = c.free.Load() {
		if c.free.CompareAndSwap(free, free&(free-1)) {
			return &c.lanes[bits.TrailingZeros64(free)]
		}
	}
	return nil
}

// await waits for a lane.
func (c *Client) await(ctx context.Context) (*Lane, error) {
	c.waiting.Add(1) // who gives a lane back after this sees it
	defer c.waiting.Add(-1)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		c.Sweep()
		if l := c.take(); l != nil {
			return l, nil
		}
		select {
		case <-c.freed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case c.over():
			return nil, ErrClosed
		case time.Since(begin) > c.limit:
			return nil, ErrSlow
		}
	}
}

// Release gives the lane back, of which every Call has succeeded. What the last one gave is not valid any
// more.
func (l *Lane) Release() {
	c := l.client
	c.free.Or(1 << l.Index)
	c.wake()
}

// wake tells those who wait that a lane has come back.
func (c *Client) wake() {
	if c.waiting.Load() == 0 {
		return
	}
	select {
	case c.freed <- struct{}{}:
	default: // there are as many signals as lanes
	}
}

// Call sends a request and waits for the answer, which is private memory. It makes no garbage. waited is
// about how long it took, and 0 if that was very short.
//
// The error is [ErrClosed], [ErrSlow] or that of ctx. After any the request may have been carried out, and
// the lane is not the caller's any more.
func (l *Lane) Call(ctx context.Context, request []byte) (answer []byte, waited time.Duration, err error) {
	c := l.client
	l.number++
	put(l.shared.request, request)
	l.shared.requested.Store(l.number)
	if c.asleep.Load() != 0 {
		c.bell.Add(1)
		wake(c.bell)
	}
	if waited, err = l.await(ctx); err != nil {
		c.abandon(l)
		return nil, waited, err
	}
	return take(l.shared.answer, l.answer), waited, nil
}

// await returns when the answer of that number is there.
func (l *Lane) await(ctx context.Context) (waited time.Duration, err error) {
	answered := l.shared.answered
	pause := spin{budget: l.client.spin, mine: l.shared.cpu, peers: l.client.cpu}
	for {
		if answered.Load() == l.number {
			return pause.took, nil
		}
		if !pause.goOn() {
			break
		}
	}
	begin := time.Now()
	err = l.sleep(ctx, begin)
	return pause.took + time.Since(begin), err
}

// sleep is await without looking all the time.
func (l *Lane) sleep(ctx context.Context, begin time.Time) error {
	c, answered := l.client, l.shared.answered
	defer l.shared.sleeping.Store(0)
	for {
		l.shared.sleeping.Store(1)
		got := answered.Load()
		switch {
		case got == l.number:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case c.ended():
			return ErrClosed
		case time.Since(begin) > c.limit:
			return ErrSlow
		}
		wait(answered, got, look)
	}
}

// abandon leaves a lane to whoever sees that its answer has come.
func (c *Client) abandon(l *Lane) {
	c.mu.Lock()
	c.stale |= 1 << l.Index
	c.mu.Unlock()
	c.wake() // Close waits for it too
	c.Sweep()
}

// Sweep hands answers that nobody waits for any more to the function that NewClient was given, and
// gives the number of those that have not come. Calls do so if they find no free lane; whoever wants it
// sooner calls it.
func (c *Client) Sweep() (left int) {
	c.mu.Lock()
	var came uint64
	for rest := c.stale; rest != 0 && !c.dead.Load(); rest &= rest - 1 {
		l := &c.lanes[bits.TrailingZeros64(rest)]
		if l.shared.answered.Load() == l.number {
			came |= 1 << l.Index
		}
	}
	c.stale &^= came // Close waits for those until they are released
	left = bits.OnesCount64(c.stale)
	c.mu.Unlock()
	for ; came != 0; came &= came - 1 {
		l := &c.lanes[bits.TrailingZeros64(came)]
		if answer := take(l.shared.answer, l.answer); c.abandoned != nil {
			c.abandoned(answer)
		}
		l.Release()
	}
	return left
}
