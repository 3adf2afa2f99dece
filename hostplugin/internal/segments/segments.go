// Package segments maps the segments of one producer into this process: each once, shared by all
// views of it, and kept for a while after the last one, so that looking at an array again and again
// costs no mapping.
package segments

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

const (
	// What no view uses any more stays mapped for idleTime. A mapping keeps the program's memory from
	// being freed, so there are limits to their number and size; a single one may be of any size.
	idleTime  = 5 * time.Second
	idleCount = 64
	idleBytes = 1 << 30
)

// Describer lends the descriptors of segments: the part of core.Producer that this package needs.
type Describer interface {
	Descriptor(ctx context.Context, id core.SegmentID, writable bool) (*os.File, error)
}

// Cache holds the mappings of one producer's segments. All methods are safe for concurrent use.
type Cache struct {
	producer Describer

	mu      sync.Mutex
	current map[key]*Memory       // the newest mapping of each segment
	opening map[key]chan struct{} // closed when the attempt has ended
	idle    list.List             // of *Memory, the longest idle first
	bytes   int64                 // of what is idle
	expiry  *time.Timer           // nil while nothing is idle
	keep    bool
}

// key names a mapping. A writable one is never used for views that may not write.
type key struct {
	id       core.SegmentID
	writable bool
}

// Memory is one mapping, a core.Memory with a count of its users.
type Memory struct {
	*shm.Mapping
	cache *Cache
	key   key

	// Guarded by cache.mu.
	users int
	since time.Time     // idle since then
	place *list.Element // in cache.idle, or nil
}

// New makes a cache. It must be closed.
func New(producer Describer) *Cache {
	return &Cache{
		producer: producer,
		current:  make(map[key]*Memory),
		opening:  make(map[key]chan struct{}),
		// With the guard, memory must become inaccessible with the last view of it.
		keep: os.Getenv("NDBRIDGE_GUARD") != "1",
	}
}

// Close unmaps what no view uses. The rest is unmapped with its last view. It is idempotent.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.keep = false
	drop := c.evict(time.Now())
	c.mu.Unlock()
	return closeAll(drop)
}

// Map gives the memory of a segment that a standing lease names. Its Close gives it back, and must be
// called once by each who got it. What the producer said about the segment is checked: an error that
// wraps core.ErrProtocol or core.ErrPointer says that it lied.
func (c *Cache) Map(ctx context.Context, s core.Segment, writable bool) (*Memory, error) {
	k := key{s.ID, writable}
	for {
		c.mu.Lock()
		if m, ok := c.current[k]; ok && m.Size() >= s.Size {
			c.use(m)
			c.mu.Unlock()
			return m, nil
		}
		other, busy := c.opening[k]
		if !busy {
			break
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	done := make(chan struct{})
	c.opening[k] = done
	c.mu.Unlock()

	mapping, err := c.open(ctx, s, writable)

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opening, k)
	close(done)
	if err != nil {
		return nil, err
	}
	m := &Memory{Mapping: mapping, cache: c, key: k, users: 1}
	c.current[k] = m // a smaller one that it replaces lives on with its users
	return m, nil
}

func (c *Cache) open(ctx context.Context, s core.Segment, writable bool) (*shm.Mapping, error) {
	file, err := c.producer.Descriptor(ctx, s.ID, writable)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	if s.Sealed {
		sealed, err := shm.Sealed(file)
		if err != nil {
			return nil, violation("segment %d: %w", s.ID, err)
		}
		if !sealed {
			return nil, violation("segment %d was said to be sealed, and could shrink", s.ID)
		}
	}
	mapping, err := shm.Map(file, s.Size, writable)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", s.ID, err)
	}
	return mapping, nil
}

func violation(format string, args ...any) error {
	return &core.Error{Op: "map", Kind: core.ErrProtocol, Err: fmt.Errorf(format, args...)}
}

// use adds a user. The caller holds the lock.
func (c *Cache) use(m *Memory) {
	if m.users++; m.place != nil {
		c.idle.Remove(m.place)
		c.bytes -= m.Size()
		m.place = nil
	}
}

// Close implements core.Memory: it ends one use.
func (m *Memory) Close() error {
	c := m.cache
	c.mu.Lock()
	if m.users--; m.users > 0 {
		c.mu.Unlock()
		return nil
	}
	now := time.Now()
	m.since, m.place = now, c.idle.PushBack(m)
	c.bytes += m.Size()
	drop := c.evict(now)
	c.mu.Unlock()
	return closeAll(drop)
}

// evict takes out what is idle for too long or too much, and sets the time for the next look. The
// caller holds the lock, and closes what it gets after letting it go: unmapping takes time.
func (c *Cache) evict(now time.Time) (drop []*Memory) {
	for e := c.idle.Front(); e != nil; e = c.idle.Front() {
		m := e.Value.(*Memory) //nolint:errcheck // nothing else is put in
		replaced := c.current[m.key] != m
		tooMuch := c.idle.Len() > idleCount || c.bytes > idleBytes && c.idle.Len() > 1
		if c.keep && !replaced && !tooMuch && now.Sub(m.since) < idleTime {
			break
		}
		c.idle.Remove(e)
		c.bytes -= m.Size()
		m.place = nil
		if !replaced {
			delete(c.current, m.key)
		}
		drop = append(drop, m)
	}
	c.schedule(now)
	return drop
}

// schedule makes expire run when the longest idle mapping is due. The caller holds the lock.
func (c *Cache) schedule(now time.Time) {
	front := c.idle.Front()
	switch {
	case front == nil && c.expiry != nil:
		c.expiry.Stop()
		c.expiry = nil
	case front != nil && c.expiry == nil:
		m := front.Value.(*Memory) //nolint:errcheck // nothing else is put in
		c.expiry = time.AfterFunc(idleTime-now.Sub(m.since), c.expire)
	}
}

func (c *Cache) expire() {
	c.mu.Lock()
	c.expiry = nil
	drop := c.evict(time.Now())
	c.mu.Unlock()
	_ = closeAll(drop) // unmapping what is mapped does not fail, and there is nobody to tell
}

func closeAll(drop []*Memory) error {
	var errs []error
	for _, m := range drop {
		errs = append(errs, m.Mapping.Close())
	}
	return errors.Join(errs...)
}
