package reuse

import (
	"sync/atomic"
	"time"
)

// ended is the number of users of what is closed, or about to be.
const ended = -1

// Entry is one open resource with a count of its users. While it is listed, to use it and to let go of it
// takes no lock: the cache looks at what is listed when it has to.
type Entry[K comparable, R Resource] struct {
	cache    *Cache[K, R]
	key      K
	resource R

	users  atomic.Int64
	used   atomic.Bool // since the cache last looked
	listed atomic.Bool // written under the cache's lock

	// Guarded by the cache's lock.
	since      time.Duration // idle since then, at the latest
	prev, next *Entry[K, R]  // in the ring of what is listed
}

// Use adds a user, who calls Release once, or reports false for a resource that was closed.
func (e *Entry[K, R]) Use() bool {
	for n := e.users.Load(); n != ended; n = e.users.Load() {
		if e.users.CompareAndSwap(n, n+1) {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return true
		}
	}
	return false
}

// Release ends one use. The error is that of closing what is not kept.
func (e *Entry[K, R]) Release() error {
	if e.users.Add(-1) > 0 || e.listed.Load() {
		return nil
	}
	return e.cache.idle(e)
}

// end closes the entry to new users, if it has none.
func (e *Entry[K, R]) end() bool { return e.users.CompareAndSwap(0, ended) }
