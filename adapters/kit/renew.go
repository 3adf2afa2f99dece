package kit

import (
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Renew sees to it that a standing lease on memory of the shared heap is on the file in which that memory lies now: a fork
// of the program has made it private, and it was promoted, or is now, which takes up to a second for a GiB. It answers with the
// segment, and with where the array's first element is in it. Nothing else of the lease changes.
//
// The error wraps core.ErrUnsupported for a lease that does not stand, or is not on the shared heap, core.ErrNotShared if
// the memory cannot be shared any more, and core.ErrPointer if the program has freed it.
func (t *Leases) Renew(id contract.LeaseID) (s contract.Segment, offset int, err error) {
	t.mu.Lock()
	entry := t.leases[id]
	if entry == nil || entry.moves == nil {
		t.mu.Unlock()
		return s, 0, errNotOnHeap()
	}
	entry.renewals++
	t.mu.Unlock()
	b, shift, err := entry.moves.Renew(entry.writable)
	t.mu.Lock()
	var last []Backing
	var drop func()
	entry.renewals--
	switch stands := t.leases[id] == entry; {
	case !stands:
		err = errNotOnHeap()
		if entry.renewals == 0 {
			drop = entry.settle()
		}
	case err == nil:
		var l contract.Lease
		before, memory := entry.segments, HostMemory(b)
		entry.segments, entry.keys = nil, memory.keys()
		last = t.leave(entry, before, t.stand(entry, &l, memory))
		spec := entry.layout.Spec()
		spec.Offset += int(shift)
		entry.layout, err = core.NewLayout(spec)
		s, offset = l.Handle.(contract.Segment), spec.Offset //nolint:errcheck,forcetypeassert // HostMemory names one
	}
	t.mu.Unlock()
	return s, offset, errors.Join(err, giveBack(last, drop))
}

func errNotOnHeap() error {
	return &core.Error{Op: "renew", Kind: core.ErrUnsupported, Err: errors.New("no standing lease on memory of the shared heap")}
}

// Stands reports whether a standing lease is on that memory, described in the same way.
func (t *Leases) Stands(id contract.LeaseID, m Memory, l core.Layout) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.leases[id]
	return entry != nil && slices.Equal(entry.keys, m.keys()) && entry.layout.Equal(l)
}
