// Package deferred makes the driver calls that wait for all streams: those that take memory or code
// away from GPUs, or bring code to them. While such a call waits, the driver lets no other call of the
// process in. If a stream waits for another process meanwhile, and that process for something that
// takes a call of this one, all of them wait for ever. So the package defers these calls until no
// stream is known to wait for another process.
package deferred

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Waiter is what streams wait for, or work that they have to do. Its type is comparable.
type Waiter interface {
	// Waiting reports whether the wait or the work goes on. It returns at once.
	Waiting() bool
}

// Calls defers the calls that cannot be made now. All methods are safe for concurrent use. The zero
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
	err  error         // valid once made is closed
	made chan struct{} // closed when the call was made
}

// waiters are those that still wait, and some that no longer do.
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

// forget drops those that no longer wait.
func (s *waiters) forget() {
	for w := range s.set {
		if !w.Waiting() {
			delete(s.set, w)
		}
	}
}

// Await calls f, which makes a stream wait for w, and returns the error of f. If some stream has waited
// for a long time without a gap, Await first pauses for up to maxPause now and then, so that deferred
// calls can be made.
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

// Working records that streams have work to do until w no longer waits. It defers calls as well, but
// each for at most a second: a call made earlier would only be slow.
func (c *Calls) Working(w Waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.works.add(w)
}

// Awaited reports whether streams wait for anything that fits.
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

// Make makes a call that waits for all streams. If no stream waits for another process or has work to
// do, Make calls f at once, after the calls deferred before, and returns its error. Otherwise it defers
// f and returns nil; the error of f is lost. f must not give streams anything that they Await.
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

// Do is Make for a caller that needs the outcome: it waits until the call is made, and returns its
// error. If ctx ends before that, Do does not make the call, and returns the cause.
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

// Flush waits until all calls that are deferred now are made. Its error is the cause of ctx.
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

// try makes the calls if that is possible now. Otherwise a goroutine makes them later.
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

// sweep makes the calls that can be made, and reports whether those were all. It never waits for the
// gate: a goroutine that gives work to a stream with a full queue holds the gate until the stream goes
// on, and must not block the others for so long.
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

// early reports whether a call cannot be made yet. The caller holds mu.
func (c *Calls) early(next *call) bool {
	c.waits.forget()
	c.works.forget()
	return len(c.waits.set) > 0 || len(c.works.set) > 0 && time.Now().Before(next.due)
}

// courtesy is how long a call waits for work to finish.
const courtesy = time.Second

const (
	// How long retry rests: nobody notifies the CPU of a fence word that a GPU writes.
	shortest = 100 * time.Microsecond
	longest  = 10 * time.Millisecond
	// If some stream has waited without a gap for patience, Await pauses for at most maxPause. If that
	// does not help, since one stream waits on and on, the patience grows.
	patience    = time.Second
	maxPatience = time.Minute
	maxPause    = 50 * time.Millisecond
)

// retry makes the calls when that is possible.
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

// stop reports whether retry can end: there are no more calls.
func (c *Calls) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retrying = len(c.queue) > 0
	return !c.retrying
}

// hold tries to make the calls while no stream is given more to wait for. The hold is short: the event
// that one stream waits for may depend on what another stream is about to get.
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
