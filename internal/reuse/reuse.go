// Package reuse keeps what is dear to open: opened once, shared by all who use it, and kept for a while
// after the last one, so that looking at the same thing again and again costs nothing.
package reuse

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limits bound what stays open without a user. One thing may be of any size.
type Limits struct {
	Time  time.Duration // how long it stays, and up to twice as long if it was used often; 0 or less: not at all
	Count int
	Bytes int64
}

// Resource is what a cache holds.
type Resource interface {
	// Size is what counts for Limits.Bytes.
	Size() int64
	// End closes it. It is called once, when nobody uses it.
	End() error
}

// Cache holds resources by their keys. All methods are safe for concurrent use.
type Cache[K comparable, R Resource] struct {
	limits Limits
	begin  time.Time // of all times

	mu      sync.Mutex
	current map[K]*Entry[K, R]  // the newest of each key
	busy    map[K]chan struct{} // being opened, or ended; closed when that is done
	list    Entry[K, R]         // the ends of the ring of what was idle when it was put there, the first one first
	count   int                 // of what is listed
	bytes   int64               // of what is listed
	expiry  *time.Timer         // nil until something was listed
	armed   bool                // expiry runs
	closed  bool
	ending  int       // how many of those that were dropped have not ended yet
	ended   sync.Cond // none of them is left
}

// New makes an empty cache. It must be closed.
func New[K comparable, R Resource](limits Limits) *Cache[K, R] {
	c := &Cache[K, R]{
		limits:  limits,
		begin:   time.Now(),
		current: make(map[K]*Entry[K, R]),
		busy:    make(map[K]chan struct{}),
	}
	c.list.prev, c.list.next = &c.list, &c.list
	c.ended.L = &c.mu
	return c
}

// Use gives the resource of a key, for which size bytes are needed: the one that is open if it is large
// enough, or what open makes. There is one attempt to open for each key at a time, not before what was
// open before has ended; others wait for that, under ctx. Who gets a resource calls the entry's Release
// once; open is told that entry.
func (c *Cache[K, R]) Use(ctx context.Context, key K, size int64, open func(*Entry[K, R]) (R, error)) (R, error) {
	var none R
	for {
		c.mu.Lock()
		if e, ok := c.current[key]; ok && e.resource.Size() >= size && e.Use() {
			c.mu.Unlock()
			return e.resource, nil
		}
		other, busy := c.busy[key]
		if !busy {
			break
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
	done := make(chan struct{})
	c.busy[key] = done
	c.mu.Unlock()

	e := &Entry[K, R]{cache: c, key: key}
	e.users.Store(1)
	resource, err := open(e)

	c.mu.Lock()
	delete(c.busy, key)
	close(done)
	if err != nil {
		c.mu.Unlock()
		return none, err
	}
	var drop []dropped[K, R]
	e.resource = resource
	old := c.current[key]
	c.current[key] = e // a smaller one that it replaces lives on with its users
	if old != nil && old.listed.Load() {
		drop = c.out(drop, old)
	}
	c.mu.Unlock()
	_ = c.end(drop) // closing what is open does not fail
	return resource, nil
}

// idle lists an entry that seems to have no user, or closes it if nothing is kept.
func (c *Cache[K, R]) idle(e *Entry[K, R]) error {
	var drop []dropped[K, R]
	c.mu.Lock()
	switch {
	case e.listed.Load():
	case c.closed || c.current[e.key] != e || c.limits.Time <= 0:
		drop = c.drop(drop, e)
	default:
		now := time.Since(c.begin)
		c.add(e, now)
		for c.count > c.limits.Count || c.bytes > c.limits.Bytes && c.count > 1 {
			if e := c.list.next; e.used.Load() {
				c.remove(e)
				c.add(e, now)
			} else {
				drop = c.out(drop, e)
			}
		}
		c.arm(now)
	}
	c.mu.Unlock()
	return c.end(drop)
}

// add lists an entry behind all others. The caller holds the lock.
func (c *Cache[K, R]) add(e *Entry[K, R], now time.Duration) {
	e.prev, e.next = c.list.prev, &c.list
	e.prev.next, e.next.prev = e, e
	c.count++
	c.bytes += e.resource.Size()
	e.since = now
	e.used.Store(false)
	e.listed.Store(true)
}

// remove takes an entry out of the list. The caller holds the lock.
func (c *Cache[K, R]) remove(e *Entry[K, R]) {
	e.listed.Store(false)
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	c.count--
	c.bytes -= e.resource.Size()
}

// dropped is an entry that was taken out, to be ended.
type dropped[K comparable, R Resource] struct {
	entry *Entry[K, R]
	done  chan struct{} // who opens the key anew waits for it; nil: nobody
}

// out takes an entry out of the list. The last of its users, if it has some, is told so by that. The
// caller holds the lock, and ends what was dropped after letting it go: that takes time.
func (c *Cache[K, R]) out(drop []dropped[K, R], e *Entry[K, R]) []dropped[K, R] {
	c.remove(e)
	return c.drop(drop, e)
}

// drop takes an entry that is not listed out of the cache, if it has no user.
func (c *Cache[K, R]) drop(drop []dropped[K, R], e *Entry[K, R]) []dropped[K, R] {
	if !e.end() {
		return drop
	}
	c.ending++
	d := dropped[K, R]{entry: e}
	if c.current[e.key] == e {
		delete(c.current, e.key)
		if _, busy := c.busy[e.key]; !busy {
			d.done = make(chan struct{})
			c.busy[e.key] = d.done
		}
	}
	return append(drop, d)
}

// arm makes expire run when the first that is listed may be due. The caller holds the lock.
func (c *Cache[K, R]) arm(now time.Duration) {
	if c.armed || c.count == 0 {
		return
	}
	c.armed = true
	due := c.limits.Time - (now - c.list.next.since)
	if c.expiry == nil {
		c.expiry = time.AfterFunc(due, c.expire)
	} else {
		c.expiry.Reset(due)
	}
}

// expire takes out of the list what is in use, and what is due.
func (c *Cache[K, R]) expire() {
	var drop []dropped[K, R]
	now := time.Since(c.begin)
	c.mu.Lock()
	c.armed = false
	e := c.list.next
	for range c.count {
		next := e.next
		switch {
		case e.users.Load() > 0, !e.used.Load() && now-e.since >= c.limits.Time:
			drop = c.out(drop, e)
		case e.used.Load():
			c.remove(e)
			c.add(e, now)
		}
		e = next
	}
	c.arm(now)
	c.mu.Unlock()
	_ = c.end(drop) // closing what is open does not fail, and there is nobody to tell
}

// Close closes what nobody uses, and returns when that and what was being closed already is closed. The rest is closed
// with its last user. It is idempotent.
func (c *Cache[K, R]) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.armed {
		c.expiry.Stop()
		c.armed = false
	}
	c.mu.Unlock()
	return c.Trim()
}

// Trim closes what nobody uses, as Close does, but the cache goes on.
func (c *Cache[K, R]) Trim() error {
	var drop []dropped[K, R]
	c.mu.Lock()
	for c.count > 0 {
		drop = c.out(drop, c.list.next)
	}
	c.mu.Unlock()
	err := c.end(drop)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.ending > 0 {
		c.ended.Wait()
	}
	return err
}

// end ends what was dropped.
func (c *Cache[K, R]) end(drop []dropped[K, R]) error {
	var errs []error
	for _, d := range drop {
		errs = append(errs, d.entry.resource.End())
		c.mu.Lock()
		if c.ending--; c.ending == 0 {
			c.ended.Broadcast()
		}
		if d.done != nil {
			delete(c.busy, d.entry.key)
			close(d.done)
		}
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}
