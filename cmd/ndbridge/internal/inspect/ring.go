package inspect

import "github.com/ndbridge/ndbridge/core"

// ring finds out in how many buffers a program publishes an array: how many versions lie at least between two in the
// same memory. A program that makes a new array for each version never comes round, as far as this can be seen.
type ring struct {
	seen    map[uintptr]uint64 // the last version at an address
	newest  uint64
	count   int
	buffers uint64 // 0: none seen
}

const (
	ringMemory = 256
	// enough is how many versions without a return make a program one that makes new arrays.
	enough = 32
)

// saw notes the version of a view, and where it lies.
func (r *ring) saw(v *core.View) {
	if !v.Copied() {
		r.lies(v.Version(), v.Addr())
	}
}

func (r *ring) lies(version uint64, at uintptr) {
	if version == 0 || version == r.newest {
		return
	}
	if r.seen == nil || len(r.seen) >= ringMemory {
		r.seen = map[uintptr]uint64{}
	}
	if before, ok := r.seen[at]; ok && version > before && (r.buffers == 0 || version-before < r.buffers) {
		r.buffers = version - before
	}
	r.seen[at] = version
	r.newest = version
	r.count++
}

// whole reports whether what was read of a version can have nothing of a later one, when newest is published.
func (r *ring) whole(version, newest uint64) bool {
	switch {
	case r.buffers == 1: // one array for all versions
		return false
	case newest == version: // the next one is written elsewhere
		return true
	case r.buffers == 0:
		return r.count >= enough
	}
	return newest-version < r.buffers-1
}
