// Package quiet makes the calls of the driver that wait for all streams: those that take memory or code
// away from GPUs, or bring code to them. While one waits, the driver lets no other call of the process in. If a stream waits for
// another process meanwhile, and that for something that takes a call of this one, none of them ever goes
// on. So such calls are made when no stream is known to wait for another process.
package quiet

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Waiter is what streams wait for, or have to do: a comparable value.
type Waiter interface {
	// Waiting says whether they still do. It takes no time.
	Waiting() bool
}

// Calls holds the calls back that cannot be made now. All methods are safe for concurrent use; the zero
// value is ready.
type Calls struct {
	gate sync.RWMutex // read-held to give a stream something to wait for, held to make the calls

	mu       sync.Mutex
	waits    waiters
	works    waiters
	queue    []*call       // in the order in which they are made
	retrying bool          // a goroutine tries again and again
	pause    chan struct{} // not nil: Await waits for its end
}

type call struct {
	f    func() error
	due  time.Time     // when it no longer waits for work to be done
	err  error         // valid when it was made
	made chan struct{} // closed then
}

// waiters are those that still wait, and some that do not.
type waiters struct {
	set   map[Waiter]struct{}
	prune int // how many there may be before those that are over are looked for
}

func (s *waiters) add(w Waiter) {
	if len(s.set) >= s.prune {
		s.forget()
		s.prune = 2*len(s.set) + 64
	}
	if s.set == nil {
		s.set = make(map[Waiter]struct{})
	}
	s.set[w] = struct{}{}
}

// forget drops what no stream waits for any more.
func (s *waiters) forget() {
	for w := range s.set {
		if !w.Waiting() {
			delete(s.set, w)
		}
	}
}

// Await calls f, which lets a stream wait for w. Where streams wait for one thing after the other, so that
// there is always one that waits, it now and then takes up to maxPause, in which calls can be made.
func (c *Calls) Await(w Waiter, f func() error) error {
	c.mu.Lock()
	pause := c.pause
	c.mu.Unlock()
	if pause != nil {
		<-pause
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if err := f(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits.add(w)
	return nil
}

// Working says that streams have work to do until w no longer waits. It holds calls back as well, but for
// at most a second each: to make them would only be slow.
func (c *Calls) Working(w Waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.works.add(w)
}

// Awaited says whether streams wait for anything that fits.
func (c *Calls) Awaited(fits func(Waiter) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits.forget()
	for w := range c.waits.set {
		if fits(w) {
			return true
		}
	}
	return false
}

// Make makes a call that waits for all streams, and gives its error: at once, after those that were held
// back, or, if a stream waits for another process or has work to do, later. Then there is no error. What the call itself
// gives to streams must not be waited for by Await.
func (c *Calls) Make(f func() error) error {
	made := c.add(f)
	c.try()
	select {
	case <-made.made:
		return made.err
	default:
		return nil
	}
}

// Do is Make for a call whose outcome the caller needs: it waits until the call was made. If ctx ends
// before that, the call is not made, and the error is the cause.
func (c *Calls) Do(ctx context.Context, f func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	asked := c.add(f)
	c.try()
	select {
	case <-asked.made:
		return asked.err
	case <-ctx.Done():
	}
	if c.forget(asked) {
		return context.Cause(ctx)
	}
	<-asked.made // it is being made
	return asked.err
}

// forget takes a call from the queue, and reports whether it was there.
func (c *Calls) forget(asked *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, asked)
	if i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	return i >= 0
}

// Flush waits until the calls are made that are held back now.
func (c *Calls) Flush(ctx context.Context) error {
	return c.Do(ctx, func() error { return nil })
}

func (c *Calls) add(f func() error) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &call{f: f, due: time.Now().Add(courtesy), made: make(chan struct{})}
	c.queue = append(c.queue, added)
	return added
}

// try makes the calls, if that can be done now. Else a goroutine does it later.
func (c *Calls) try() {
	if c.sweep() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.retrying {
		c.retrying = true
		go c.retry()
	}
}

// sweep reports whether all calls were made. It never waits for the gate: who gives work to a stream
// whose queue is full is in it until the stream goes on, and must not keep others out for so long.
func (c *Calls) sweep() bool {
	if !c.gate.TryLock() {
		return false
	}
	defer c.gate.Unlock()
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || c.early(c.queue[0]) {
			defer c.mu.Unlock()
			return len(c.queue) == 0
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		next.err = next.f()
		close(next.made)
	}
}

// early says whether a call cannot be made yet. The caller holds mu.
func (c *Calls) early(next *call) bool {
	c.waits.forget()
	c.works.forget()
	return len(c.waits.set) > 0 || len(c.works.set) > 0 && time.Now().Before(next.due)
}

// courtesy is how long a call waits for work to be done.
const courtesy = time.Second

const (
	// How long retry rests, as nobody tells when a word was written.
	shortest = 100 * time.Microsecond
	longest  = 10 * time.Millisecond
	// If there was always a stream that waited for patience, Await is held up for at most maxPause. If that
	// does not help, as one of them waits on and on, the patience grows.
	patience    = time.Second
	maxPatience = time.Minute
	maxPause    = 50 * time.Millisecond
)

// retry makes the calls when that can be done.
func (c *Calls) retry() {
	rest, patience := shortest, patience
	for tried := time.Now(); ; {
		<-time.After(rest)
		rest = min(2*rest, longest)
		if c.sweep() && c.stop() {
			return
		}
		if time.Since(tried) >= patience {
			c.hold()
			tried, patience = time.Now(), min(2*patience, maxPatience)
		}
	}
}

// stop ends retry, unless there are calls again.
func (c *Calls) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retrying = len(c.queue) > 0
	return !c.retrying
}

// hold tries to make the calls while no stream is given more to wait for. It does not last: what a stream
// waits for may come only after that which another one is to be given.
func (c *Calls) hold() {
	pause := make(chan struct{})
	c.mu.Lock()
	c.pause = pause
	c.mu.Unlock()
	for start := time.Now(); !c.sweep() && time.Since(start) < maxPause; {
		<-time.After(shortest)
	}
	c.mu.Lock()
	c.pause = nil
	c.mu.Unlock()
	close(pause)
}
