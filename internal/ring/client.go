package ring

import (
	"context"
	"errors"
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
	bell, asleep, closed *atomic.Uint32
	lanes                []lane
	numbers              []uint32 // of the last request in each lane; whoever has the lane has it
	free                 chan int // lanes that nobody has
	spin, limit          time.Duration
	abandoned            func(answer []byte)

	calls sync.RWMutex // read-held by calls, held to close
	dead  atomic.Bool
	mu    sync.Mutex
	stale []int // lanes whose callers did not wait for the answer
}

// NewClient uses the memory of a ring that another process serves. Callers look for their answer for
// as long as spin before they sleep, and wait for it, and before for a lane, for limit each. abandoned is called, from whatever goroutine notices it, with the
// answer to a request whose caller had given up; it must not call back.
func NewClient(mem []byte, spin, limit time.Duration, abandoned func(answer []byte)) (*Client, error) {
	lanes, err := lanesOf(mem)
	if err != nil {
		return nil, err
	}
	c := &Client{
		bell: word(mem, offBell), asleep: word(mem, offAsleep), closed: word(mem, offClosed),
		numbers: make([]uint32, lanes), free: make(chan int, lanes), spin: spin, limit: limit, abandoned: abandoned,
	}
	for i := range lanes {
		c.lanes = append(c.lanes, laneAt(mem, i))
		c.free <- i
	}
	return c, nil
}

// Close ends the calls that are under way, and waits for them. The memory may be unmapped when it has
// returned. It is idempotent.
func (c *Client) Close() {
	c.dead.Store(true)
	c.calls.Lock()
	defer c.calls.Unlock()
	c.stale = nil
}

// Call sends a request and waits for the answer, which it copies into the given memory, of at least
// [MaxAnswer] bytes. It makes no garbage. If all lanes are in use it waits for one.
//
// The error is [ErrClosed], [ErrSlow] or that of ctx. After any the request may have been carried out.
func (c *Client) Call(ctx context.Context, request, answer []byte) ([]byte, error) {
	c.calls.RLock()
	defer c.calls.RUnlock()
	i, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	l := &c.lanes[i]
	number := c.numbers[i] + 1
	c.numbers[i] = number
	put(l.request, request)
	l.requested.Store(number)
	if c.asleep.Load() != 0 {
		c.bell.Add(1)
		wake(c.bell)
	}
	if err := c.await(ctx, l, number); err != nil {
		c.abandon(i)
		return nil, err
	}
	answer = take(l.answer, answer)
	c.free <- i
	return answer, nil
}

// acquire takes a lane that nobody has.
func (c *Client) acquire(ctx context.Context) (int, error) {
	if c.dead.Load() || c.closed.Load() != 0 {
		return 0, ErrClosed
	}
	select {
	case i := <-c.free:
		return i, nil
	default:
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		c.sweep()
		select {
		case i := <-c.free:
			return i, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
			switch {
			case c.dead.Load() || c.closed.Load() != 0:
				return 0, ErrClosed
			case time.Since(begin) > c.limit:
				return 0, ErrSlow
			}
		}
	}
}

// await returns when the answer of that number is there.
func (c *Client) await(ctx context.Context, l *lane, number uint32) error {
	for pause := newSpin(c.spin); ; {
		if l.answered.Load() == number {
			return nil
		}
		if !pause.goOn() {
			break
		}
	}
	defer l.sleeping.Store(0)
	for begin := time.Now(); ; {
		l.sleeping.Store(1)
		got := l.answered.Load()
		switch {
		case got == number:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case c.dead.Load() || c.closed.Load() != 0:
			return ErrClosed
		case time.Since(begin) > c.limit:
			return ErrSlow
		}
		wait(l.answered, got, look)
	}
}

// abandon leaves a lane to whoever sees that its answer has come.
func (c *Client) abandon(i int) {
	c.mu.Lock()
	c.stale = append(c.stale, i)
	c.mu.Unlock()
	c.sweep()
}

// Sweep hands answers that nobody waits for any more to the function that NewClient was given, and
// gives the number of those that have not come. Calls do so if they find no free lane; whoever wants it
// sooner calls it.
func (c *Client) Sweep() (left int) {
	c.calls.RLock()
	defer c.calls.RUnlock()
	if c.dead.Load() {
		return 0
	}
	return c.sweep()
}

func (c *Client) sweep() (remaining int) {
	c.mu.Lock()
	var came []int
	left := c.stale[:0]
	for _, i := range c.stale {
		if c.lanes[i].answered.Load() == c.numbers[i] {
			came = append(came, i)
		} else {
			left = append(left, i)
		}
	}
	c.stale, remaining = left, len(left)
	c.mu.Unlock()
	for _, i := range came {
		if answer := take(c.lanes[i].answer, make([]byte, MaxAnswer)); c.abandoned != nil {
			c.abandoned(answer)
		}
		c.free <- i
	}
	return remaining
}
