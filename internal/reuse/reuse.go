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
	Time  time.Duration // how long it stays; 0 or less: not at all
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
	begin  time.Time // of all times: to look at the clock alone is quicker than to ask for the time

	mu      sync.Mutex
	current map[K]*Entry[K, R]  // the newest of each key
	busy    map[K]chan struct{} // being opened, or ended; closed when that is done
	idle    Entry[K, R]         // the ends of the ring of what is idle; behind it is the longest idle one
	count   int                 // of what is idle
	bytes   int64               // of what is idle
	expiry  *time.Timer         // nil until something was idle
	armed   bool                // expiry runs
	closed  bool
}

// Entry is one open resource with a count of its users.
type Entry[K comparable, R Resource] struct {
	cache *Cache[K, R]
	key   K

	// Guarded by cache.mu.
	resource   R
	users      int
	since      time.Duration // idle since then
	prev, next *Entry[K, R]  // in the ring of what is idle, or nil
}

// New makes an empty cache. It must be closed.
func New[K comparable, R Resource](limits Limits) *Cache[K, R] {
	c := &Cache[K, R]{
		limits:  limits,
		begin:   time.Now(),
		current: make(map[K]*Entry[K, R]),
		busy:    make(map[K]chan struct{}),
	}
	c.idle.prev, c.idle.next = &c.idle, &c.idle
	return c
}

// Get is Use if the resource is open. It makes no garbage.
func (c *Cache[K, R]) Get(key K, size int64) (r R, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key, size)
}

// get is Get for those who hold the lock.
func (c *Cache[K, R]) get(key K, size int64) (r R, ok bool) {
	e, ok := c.current[key]
	if !ok || e.resource.Size() < size {
		return r, false
	}
	if e.users++; e.next != nil {
		c.remove(e)
	}
	return e.resource, true
}

// Use gives the resource of a key, for which size bytes are needed: the one that is open if it is large
// enough, or what open makes. There is one attempt to open for each key at a time, not before what was
// open before has ended; others wait for that, under ctx. Who gets a resource calls the entry's Release
// once; open is told that entry.
func (c *Cache[K, R]) Use(ctx context.Context, key K, size int64, open func(*Entry[K, R]) (R, error)) (R, error) {
	var none R
	for {
		c.mu.Lock()
		if resource, ok := c.get(key, size); ok {
			c.mu.Unlock()
			return resource, nil
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

	e := &Entry[K, R]{cache: c, key: key, users: 1}
	resource, err := open(e)

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, key)
	close(done)
	if err != nil {
		return none, err
	}
	e.resource = resource
	c.current[key] = e // a smaller one that it replaces lives on with its users
	return resource, nil
}

// add puts an entry behind all that is idle. The caller holds the lock.
func (c *Cache[K, R]) add(e *Entry[K, R]) {
	e.prev, e.next = c.idle.prev, &c.idle
	e.prev.next, e.next.prev = e, e
	c.count++
	c.bytes += e.resource.Size()
}

// remove takes an entry out of what is idle. The caller holds the lock.
func (c *Cache[K, R]) remove(e *Entry[K, R]) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	c.count--
	c.bytes -= e.resource.Size()
}

// Release ends one use. The error is that of closing what is not kept.
func (e *Entry[K, R]) Release() error {
	c := e.cache
	c.mu.Lock()
	if e.users--; e.users > 0 {
		c.mu.Unlock()
		return nil
	}
	now := time.Since(c.begin)
	e.since = now
	c.add(e)
	drop := c.evict(now)
	c.mu.Unlock()
	if drop == nil {
		return nil
	}
	return c.end(drop)
}

// Close closes what nobody uses. The rest is closed with its last user. It is idempotent.
func (c *Cache[K, R]) Close() error {
	c.mu.Lock()
	c.closed = true
	drop := c.evict(time.Since(c.begin))
	c.mu.Unlock()
	return c.end(drop)
}

// dropped is an entry that was taken out, to be ended.
type dropped[K comparable, R Resource] struct {
	entry *Entry[K, R]
	done  chan struct{} // who opens the key anew waits for it; nil: nobody
}

// evict takes out what is idle for too long or too much, and sets the time for the next look. The
// caller holds the lock, and ends what it gets after letting it go: that takes time.
func (c *Cache[K, R]) evict(now time.Duration) (drop []dropped[K, R]) {
	for e := c.idle.next; e != &c.idle; e = c.idle.next {
		replaced := c.current[e.key] != e
		tooMuch := c.count > c.limits.Count || c.bytes > c.limits.Bytes && c.count > 1
		if !c.closed && !replaced && !tooMuch && now-e.since < c.limits.Time {
			break
		}
		c.remove(e)
		d := dropped[K, R]{entry: e}
		if !replaced {
			delete(c.current, e.key)
			if _, busy := c.busy[e.key]; !busy {
				d.done = make(chan struct{})
				c.busy[e.key] = d.done
			}
		}
		drop = append(drop, d)
	}
	c.schedule(now)
	return drop
}

// schedule makes expire run when the longest idle resource is due, or before: what is used again and again
// does not set the time anew with each use. The caller holds the lock.
func (c *Cache[K, R]) schedule(now time.Duration) {
	switch front := c.idle.next; {
	case front == &c.idle && c.closed && c.armed:
		c.expiry.Stop()
		c.armed = false
	case front == &c.idle || c.armed:
	case c.expiry == nil:
		c.expiry = time.AfterFunc(c.limits.Time-(now-front.since), c.expire)
		c.armed = true
	default:
		c.expiry.Reset(c.limits.Time - (now - front.since))
		c.armed = true
	}
}

func (c *Cache[K, R]) expire() {
	c.mu.Lock()
	c.armed = false
	drop := c.evict(time.Since(c.begin))
	c.mu.Unlock()
	_ = c.end(drop) // closing what is open does not fail, and there is nobody to tell
}

// end ends what evict gave.
func (c *Cache[K, R]) end(drop []dropped[K, R]) error {
	var errs []error
	for _, d := range drop {
		errs = append(errs, d.entry.resource.End())
		if d.done != nil {
			c.mu.Lock()
			delete(c.busy, d.entry.key)
			c.mu.Unlock()
			close(d.done)
		}
	}
	return errors.Join(errs...)
}
