// Package reuse keeps what is dear to open: opened once, shared by all who use it, and kept for a while
// after the last one, so that looking at the same thing again and again costs nothing.
package reuse

import (
	"container/list"
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

	mu      sync.Mutex
	current map[K]*Entry[K, R]  // the newest of each key
	busy    map[K]chan struct{} // being opened, or ended; closed when that is done
	idle    list.List           // of *Entry[K, R], the longest idle first
	bytes   int64               // of what is idle
	expiry  *time.Timer         // nil while nothing is idle
	closed  bool
}

// Entry is one open resource with a count of its users.
type Entry[K comparable, R Resource] struct {
	cache *Cache[K, R]
	key   K

	// Guarded by cache.mu.
	resource R
	users    int
	since    time.Time     // idle since then
	place    *list.Element // in cache.idle, or nil
}

// New makes an empty cache. It must be closed.
func New[K comparable, R Resource](limits Limits) *Cache[K, R] {
	return &Cache[K, R]{
		limits:  limits,
		current: make(map[K]*Entry[K, R]),
		busy:    make(map[K]chan struct{}),
	}
}

// Use gives the resource of a key, for which size bytes are needed: the one that is open if it is large
// enough, or what open makes. There is one attempt to open for each key at a time, not before what was
// open before has ended; others wait for that, under ctx. Who gets a resource calls the entry's Release
// once; open is told that entry.
func (c *Cache[K, R]) Use(ctx context.Context, key K, size int64, open func(*Entry[K, R]) (R, error)) (R, error) {
	var none R
	for {
		c.mu.Lock()
		if e, ok := c.current[key]; ok && e.resource.Size() >= size {
			c.use(e)
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

// use adds a user. The caller holds the lock.
func (c *Cache[K, R]) use(e *Entry[K, R]) {
	if e.users++; e.place != nil {
		c.idle.Remove(e.place)
		c.bytes -= e.resource.Size()
		e.place = nil
	}
}

// Release ends one use. The error is that of closing what is not kept.
func (e *Entry[K, R]) Release() error {
	c := e.cache
	c.mu.Lock()
	if e.users--; e.users > 0 {
		c.mu.Unlock()
		return nil
	}
	now := time.Now()
	e.since, e.place = now, c.idle.PushBack(e)
	c.bytes += e.resource.Size()
	drop := c.evict(now)
	c.mu.Unlock()
	return c.end(drop)
}

// Close closes what nobody uses. The rest is closed with its last user. It is idempotent.
func (c *Cache[K, R]) Close() error {
	c.mu.Lock()
	c.closed = true
	drop := c.evict(time.Now())
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
func (c *Cache[K, R]) evict(now time.Time) (drop []dropped[K, R]) {
	for front := c.idle.Front(); front != nil; front = c.idle.Front() {
		e := front.Value.(*Entry[K, R]) //nolint:errcheck // nothing else is put in
		replaced := c.current[e.key] != e
		tooMuch := c.idle.Len() > c.limits.Count || c.bytes > c.limits.Bytes && c.idle.Len() > 1
		if !c.closed && !replaced && !tooMuch && now.Sub(e.since) < c.limits.Time {
			break
		}
		c.idle.Remove(front)
		c.bytes -= e.resource.Size()
		e.place = nil
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

// schedule makes expire run when the longest idle resource is due. The caller holds the lock.
func (c *Cache[K, R]) schedule(now time.Time) {
	front := c.idle.Front()
	switch {
	case front == nil && c.expiry != nil:
		c.expiry.Stop()
		c.expiry = nil
	case front != nil && c.expiry == nil:
		e := front.Value.(*Entry[K, R]) //nolint:errcheck // nothing else is put in
		c.expiry = time.AfterFunc(c.limits.Time-now.Sub(e.since), c.expire)
	}
}

func (c *Cache[K, R]) expire() {
	c.mu.Lock()
	c.expiry = nil
	drop := c.evict(time.Now())
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
