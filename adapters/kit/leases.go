package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Leases is the table of a producer's standing leases and of the segments that they stand on. A
// producer that embeds one has the methods Descriptor and Release of [contract.Producer].
//
// The zero value is an empty table, ready for use. All methods are safe for concurrent use. Neither
// the table's lock nor any other is held while a backing or a drop function is called.
type Leases struct {
	mu          sync.Mutex
	closed      bool
	lastLease   contract.LeaseID
	lastSegment contract.SegmentID
	leases      map[contract.LeaseID]*lease
	segments    map[contract.SegmentID]*segment // those in use
	byKey       map[any]*segment                // the same
	retired     retired
}

// lease is one array as it was granted.
type lease struct {
	segments []*segment // none for an array without elements
	writable bool
	drop     func()

	layout   core.Layout // in the memory that the lease is on now, whose keys these are
	keys     []any
	moves    Moving // nil: the memory stays where it is
	renewals int    // calls of Renew under way
}

// segment is a backing in use.
type segment struct {
	id      contract.SegmentID
	backing Backing
	users   int      // leases, and Descriptor calls under way
	writers int      // leases that were granted as writable
	fence   bool     // which a host may write, whatever it has leased
	opening int      // Descriptor calls under way
	ended   []*lease // meanwhile: their memory stays until the calls are done
}

// Grant enters a lease into the table and gives it back with its ID, and with the handle and the
// fence that name its memory. It takes the memory's backings over: each is closed when the last lease
// on its segment has ended, or at once if the segment is known already. If drop is not nil it is called
// exactly once, after the lease has ended, by whoever ended it.
//
// After Close it gives everything back at once and reports an error that wraps core.ErrClosed.
func (t *Leases) Grant(l contract.Lease, m Memory, drop func()) (contract.Lease, error) {
	entry := &lease{writable: l.Writable, drop: drop, layout: l.Layout, keys: m.keys(), moves: m.Moves}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return contract.Lease{}, &core.Error{
			Op: "lease", Kind: core.ErrClosed,
			Err: errors.Join(errors.New("the producer has ended"), giveBack(m.backings(), drop)),
		}
	}
	spare := t.stand(entry, &l, m)
	t.lastLease++
	l.ID = t.lastLease
	if t.leases == nil {
		t.leases = make(map[contract.LeaseID]*lease)
	}
	t.leases[l.ID] = entry
	t.mu.Unlock()
	if err := giveBack(spare); err != nil {
		return contract.Lease{}, errors.Join(err, t.Release(context.Background(), l.ID))
	}
	return l, nil
}

// stand lets an entry stand on memory, too, which names what it is in l. Backings that are known already
// come with those to give back.
func (t *Leases) stand(entry *lease, l *contract.Lease, m Memory) (spare []Backing) {
	backings := m.backings()
	ids := make([]contract.SegmentID, len(backings))
	for i, b := range backings {
		s, known := t.use(b)
		s.fence = i == len(m.Parts)
		if known {
			spare = append(spare, b)
		}
		ids[i] = s.id
		if slices.Contains(entry.segments, s) {
			s.users-- // once is enough
			continue
		}
		if entry.writable {
			s.writers++
		}
		entry.segments = append(entry.segments, s)
	}
	if m.Name != nil {
		m.Name(l, ids)
	}
	return spare
}

// Refence gives a standing lease one more fence, which takes the place of those before. It takes over what
// the fence stands on, as [Leases.Grant] does, and reports false if the lease does not stand.
func (t *Leases) Refence(id contract.LeaseID, fence Memory) (contract.Fence, bool) {
	t.mu.Lock()
	entry := t.leases[id]
	if entry == nil {
		t.mu.Unlock()
		_ = giveBack(fence.backings()) // there is no lease to tell of it
		return nil, false
	}
	l := contract.Lease{Fence: contract.Ready{}}
	spare := t.stand(entry, &l, fence)
	t.mu.Unlock()
	_ = giveBack(spare)
	return l.Fence, true
}

// use finds or makes the segment of b. If it was known, b is not needed.
func (t *Leases) use(b Backing) (s *segment, known bool) {
	key := b.Key()
	if s = t.byKey[key]; s != nil {
		s.users++
		return s, true
	}
	s = &segment{backing: b, users: 1}
	var again bool
	if s.id, again = t.retired.take(key); !again {
		t.lastSegment++
		s.id = t.lastSegment
	}
	if t.byKey == nil {
		t.byKey, t.segments = make(map[any]*segment), make(map[contract.SegmentID]*segment)
	}
	t.byKey[key], t.segments[s.id] = s, s
	return s, false
}

// unuse ends one use of s. The backing comes with those to give back if that was the last.
func (t *Leases) unuse(s *segment, last []Backing) []Backing {
	s.users--
	if s.users > 0 {
		return last
	}
	key := s.backing.Key()
	delete(t.byKey, key)
	delete(t.segments, s.id)
	t.retired.put(key, s.id)
	return append(last, s.backing)
}

// Descriptor implements the method of [contract.Producer].
func (t *Leases) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, descriptorError(id, err, nil, "")
	}
	t.mu.Lock()
	s := t.segments[id]
	switch {
	case s == nil:
		t.mu.Unlock()
		return nil, descriptorError(id, core.ErrNotFound, errors.New("no standing lease names it"), "")
	case writable && s.writers == 0 && !s.fence:
		t.mu.Unlock()
		return nil, descriptorError(id, core.ErrReadOnly,
			errors.New("no standing lease on it was granted as writable"), "lease the array as writable")
	}
	s.users++
	s.opening++
	t.mu.Unlock()
	f, err := s.backing.Open(writable)
	t.mu.Lock()
	var drops []func()
	if s.opening--; s.opening == 0 {
		ended := s.ended
		s.ended = nil
		for _, l := range ended {
			drops = append(drops, l.settle())
		}
	}
	last := t.unuse(s, nil)
	t.mu.Unlock()
	err = errors.Join(err, giveBack(last, drops...))
	if err != nil {
		if f != nil {
			err = errors.Join(err, shm.Close(f))
		}
		kind := core.ErrUnavailable
		if errors.Is(err, core.ErrReadOnly) {
			kind = core.ErrReadOnly
		}
		return nil, descriptorError(id, kind, err, "")
	}
	return f, nil
}

func descriptorError(id contract.SegmentID, kind, cause error, remedy string) error {
	return &core.Error{
		Op: "descriptor", Object: fmt.Sprintf("segment %d", id), Kind: kind, Err: cause, Remedy: remedy,
	}
}

// Release implements the method of [contract.Producer]. It ends all the leases named, whatever becomes
// of ctx; an error says that memory could not be given back in order, not that a lease still
// stands.
func (t *Leases) Release(_ context.Context, ids ...contract.LeaseID) error {
	var errs error
	for _, id := range ids {
		t.mu.Lock()
		last, drop := t.end(id)
		t.mu.Unlock()
		if err := giveBack(last, drop); err != nil {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// end takes a lease out of the table, and says what is to be given back.
func (t *Leases) end(id contract.LeaseID) (last []Backing, drop func()) {
	entry := t.leases[id]
	if entry == nil {
		return nil, nil
	}
	delete(t.leases, id)
	return t.leave(entry, entry.segments, nil), entry.settle()
}

// leave lets an entry stand on segments no more. Backings that nobody needs come with those to give back.
func (t *Leases) leave(entry *lease, segments []*segment, last []Backing) []Backing {
	for _, s := range segments {
		if entry.writable {
			s.writers--
		}
		last = t.unuse(s, last)
	}
	return last
}

// settle gives what is to be dropped, unless a call on the ended lease's memory is under way.
func (l *lease) settle() (drop func()) {
	if l.renewals > 0 {
		return nil // the last of them does
	}
	for _, s := range l.segments {
		if s.opening > 0 {
			s.ended = append(s.ended, l)
			return nil
		}
	}
	return l.drop
}

// Len is the number of standing leases.
func (t *Leases) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.leases)
}

// Close ends all leases but those that are in use, which are released later, and refuses new ones from now on.
func (t *Leases) Close(inUse ...contract.LeaseID) error {
	t.mu.Lock()
	t.closed = true
	ids := make([]contract.LeaseID, 0, len(t.leases))
	for id := range t.leases {
		if !slices.Contains(inUse, id) {
			ids = append(ids, id)
		}
	}
	t.mu.Unlock()
	return t.Release(context.Background(), ids...)
}

// giveBack closes backings and calls drops, each of which may be nil.
func giveBack(last []Backing, drops ...func()) (err error) {
	for _, b := range last {
		err = errors.Join(err, b.Close())
	}
	for _, drop := range drops {
		if drop != nil {
			drop()
		}
	}
	return err
}

// maxRetired bounds how many segments without a lease keep their ID.
const maxRetired = 256

// retired remembers the IDs of the last segments that went out of use, so that the next lease on the
// same memory has the same ID: a host that has kept its mapping need not map it again.
type retired struct {
	ids   map[any]contract.SegmentID
	order []any // the same keys, oldest first
}

func (r *retired) put(key any, id contract.SegmentID) {
	if r.ids == nil {
		r.ids = make(map[any]contract.SegmentID)
	}
	r.ids[key] = id
	r.order = append(r.order, key)
	for len(r.order) > maxRetired {
		delete(r.ids, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *retired) take(key any) (id contract.SegmentID, ok bool) {
	if id, ok = r.ids[key]; ok {
		delete(r.ids, key)
		for i, k := range slices.Backward(r.order) { // most often it is the last
			if k == key {
				r.order = slices.Delete(r.order, i, i+1)
				break
			}
		}
	}
	return id, ok
}
