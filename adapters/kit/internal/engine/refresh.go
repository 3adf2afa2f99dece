package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// standing is a lease together with what it takes to look at its name again.
type standing struct {
	path  names.Path
	base  names.Path // that leads to the object, of which path means all or a part
	req   contract.Request
	lease contract.Lease
	addr  uintptr        // of the object's own memory, which described describes; 0: it makes other memory for each look
	copy  *routes.Copied // the copy that the lease stands on; nil: there is none, or not in host memory

	described   core.Layout
	publication *published.Publication // that was leased; nil: it was a variable
	watch       *py.Watch              // nil: the object is read anew each time
	direct      py.Copy                // how the copy is made again while the watch says that nothing has changed
	pointer     *gpu.Pointer           // memory of a GPU that has to stand
	marked      bool                   // the fence that the lease was granted with is that of each look; otherwise each needs its own
	spared      bool                   // the copy is the framework's own, of an array that cannot change

	// Of leasing's lock: how many looks are under way, and whether the lease was given back meanwhile. Its memory stays
	// until they are done, since they may copy into it.
	looks int
	ended bool

	// What had happened before the name was last read: forks, and changes of which names are published.
	forks, changes atomic.Uint64
}

// leasing are the leases that stand. The zero value is ready.
type leasing struct {
	mu     sync.Mutex
	leases map[contract.LeaseID]*standing
}

func (l *leasing) add(s *standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases == nil {
		l.leases = make(map[contract.LeaseID]*standing)
	}
	l.leases[s.lease.ID] = s
}

// get gives a lease that stands, or nil.
func (l *leasing) get(id contract.LeaseID) *standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.leases[id]; s != nil && !s.ended {
		return s
	}
	return nil
}

// begin begins looks at leases, which it appends to looks: nil for one that does not stand any more.
func (l *leasing) begin(looks []*standing, ids ...contract.LeaseID) []*standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		s := l.leases[id]
		if s != nil && s.ended {
			s = nil
		}
		if s != nil {
			s.looks++
		}
		looks = append(looks, s)
	}
	return looks
}

// end ends what begin gave. It gives the leases that are to be ended now, since they were given back meanwhile.
func (l *leasing) end(looks []*standing) (now []contract.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range looks {
		if s == nil {
			continue
		}
		if s.looks--; s.ended && s.looks == 0 {
			delete(l.leases, s.lease.ID)
			now = append(now, s.lease.ID)
		}
	}
	return now
}

// remove takes leases out that are given back, and gives those that can end now. The others end when the looks at
// them do.
func (l *leasing) remove(ids []contract.LeaseID) (now []contract.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		s := l.leases[id]
		if s != nil {
			s.ended = true
		}
		if s == nil || s.looks == 0 {
			delete(l.leases, id)
			now = append(now, id)
		}
	}
	return now
}

// close takes all leases out, and gives those that cannot end yet.
func (l *leasing) close() (busy []contract.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, s := range l.leases {
		s.ended = true
		if s.looks > 0 {
			busy = append(busy, id)
		}
	}
	return busy
}

// looked ends looks at leases.
func (p *Program) looked(looks []*standing) {
	_ = p.leases.Release(context.Background(), p.leasing.end(looks)...) // nobody is there to be told
}

// mailbox answers the requests of one mailbox, all from one goroutine, which is locked to its thread.
type mailbox struct {
	*Program
	thread *py.Thread
	forks  *atomic.Uint64 // what the heap counts forks in; nil: there is no table of offers

	// The memory of one call of Refreshes.
	standing []*standing // that are still to be answered about
	looks    []*standing // the same, all of them
	checks   []py.Check
	checked  []int // the leases that the checks are about
}

var (
	_ handoff.Prompt     = (*Program)(nil)
	_ handoff.Offerer    = (*mailbox)(nil)
	_ contract.Refresher = (*Program)(nil)
	_ contract.Renewer   = (*Program)(nil)
)

// Mailbox implements handoff.Prompt.
func (p *Program) Mailbox() handoff.Producer { return &mailbox{Program: p, thread: p.interp.Thread()} }

// Refreshes implements handoff.Producer. Most leases cost no more than a look at their fingerprints: those are
// all looked at in one call. What has changed, or has no fingerprint, is read anew, in another.
func (m *mailbox) Refreshes(ctx context.Context, ids []contract.LeaseID, only bool, results []handoff.Look) []handoff.Look {
	first := len(results)
	for range ids {
		results = append(results, handoff.Look{})
	}
	looks := results[first:]
	m.standing, m.checks, m.checked = m.standing[:0], m.checks[:0], m.checked[:0]
	if m.state.failed() != nil {
		return results
	}
	forks, slow := m.published.Forks(), false
	m.looks = m.leasing.begin(m.looks[:0], ids...)
	m.standing = append(m.standing, m.looks...)
	for i, s := range m.standing {
		if s == nil || !m.quick(s, forks, only) {
			slow = slow || s != nil || only && m.published.Offered(ids[i])
			continue
		}
		m.checked = append(m.checked, i)
		m.checks = append(m.checks, py.Check{Watch: s.watch, Copy: s.direct})
	}
	if len(m.checks) > 0 {
		m.thread.Check(m.checks)
	}
	for n, i := range m.checked {
		if m.checks[n].Same && m.unchanged(ids[i], m.standing[i], &looks[i]) { //nolint:contextcheck // it outlives the call
			m.standing[i] = nil
			continue
		}
		slow = true
	}
	if slow {
		m.readAgain(ctx, ids, only, looks)
	}
	m.looked(m.looks) //nolint:contextcheck // it outlives the call
	clear(m.standing)
	clear(m.looks)
	return results
}

// quick reports whether a fingerprint tells that a lease is as it was.
func (p *Program) quick(s *standing, forks uint64, only bool) bool {
	switch {
	case s.watch == nil, contract.Copied(s.lease.Route) && !s.spared && s.direct == (py.Copy{}) && !only:
		return false
	case s.lease.Route == contract.RouteSharedHeap && s.forks.Load() != forks:
		return false
	case s.publication == nil:
		return s.changes.Load() == p.published.Changes()
	default:
		return p.published.Last(s.base.String()).Is(s.publication)
	}
}

// unchanged answers about a lease whose fingerprint is the same. It reports false if there is no fence.
func (p *Program) unchanged(id contract.LeaseID, s *standing, look *handoff.Look) bool {
	look.Status = handoff.Unchanged
	if s.pointer == nil {
		return true
	}
	if s.marked {
		return s.pointer.Stands()
	}
	fence, ok := p.refence(id, s.pointer)
	if ok {
		look.Status, look.Fence = handoff.Fenced, fence
	}
	return ok
}

// refence gives a lease on memory of a GPU a fence of now.
func (p *Program) refence(id contract.LeaseID, pointer *gpu.Pointer) (contract.CUDAWord, bool) {
	memory, ok := p.router.Refence(pointer)
	if !ok {
		return contract.CUDAWord{}, false
	}
	fence, ok := p.leases.Refence(id, memory)
	word, isWord := fence.(contract.CUDAWord)
	return word, ok && isWord
}

// readAgain answers about the leases of the round that are left. What takes long is left to gRPC.
func (m *mailbox) readAgain(ctx context.Context, ids []contract.LeaseID, only bool, looks []handoff.Look) {
	_ = m.thread.Do(func(g *py.GIL) error { // it fails if the interpreter ends
		for i, s := range m.standing {
			offered := s == nil && looks[i].Status == handoff.Ask && only && m.published.Offered(ids[i])
			if s == nil && !offered {
				continue
			}
			_ = g.Nested(func() error { // an error is for gRPC, too
				if offered {
					looks[i].Status = m.offerAgain(ctx, g, ids[i])
					return nil
				}
				l, changed, err := m.grant(ctx, g, s.path, s.req, s, true)
				looks[i] = m.lookOf(l, changed, only, err) //nolint:contextcheck // it outlives the call
				return err
			})
		}
		return nil
	})
}

// offerAgain looks whether a published object still has the memory that is offered. If not, what it has now is
// published.
func (p *Program) offerAgain(ctx context.Context, g *py.GIL, id contract.LeaseID) handoff.Status {
	name, pub := p.published.OfOffer(id)
	if pub == nil {
		return handoff.Changed
	}
	if pub.Watch != nil && g.Same(pub.Watch) {
		return handoff.Unchanged
	}
	path, err := names.Parse(name)
	if err != nil {
		return handoff.Ask // never: it was published
	}
	l, _, err := p.grant(ctx, g, path, contract.Request{Copy: contract.CopyNever}, nil, true)
	if err == nil {
		_ = p.Release(context.Background(), l.ID) //nolint:contextcheck // it was not asked for
	}
	if p.published.Last(name) != pub || handoff.Elsewhere(err) && !errors.Is(err, core.ErrNotShared) {
		return handoff.Changed
	}
	return handoff.Unchanged
}

// lookOf says what became of a lease that was read anew.
func (p *Program) lookOf(l contract.Lease, changed, only bool, err error) handoff.Look {
	word, fenced := l.Fence.(contract.CUDAWord)
	switch {
	case err != nil && only && handoff.Elsewhere(err):
		return handoff.Look{Status: handoff.Changed}
	case err != nil:
		return handoff.Look{}
	case changed && only:
		_ = p.Release(context.Background(), l.ID) // it was not asked for
		return handoff.Look{Status: handoff.Changed}
	case changed:
		granted := l
		return handoff.Look{Status: handoff.Changed, Lease: &granted}
	case fenced:
		return handoff.Look{Status: handoff.Fenced, Fence: word}
	default:
		return handoff.Look{Status: handoff.Unchanged}
	}
}

// Refresh implements contract.Refresher. A name that is not there is waited for, as by Lease.
func (p *Program) Refresh(ctx context.Context, id contract.LeaseID) (l contract.Lease, changed bool, err error) {
	s := p.leasing.get(id)
	if s == nil {
		return l, false, errEnded()
	}
	return p.lease(ctx, "refresh", s.path.String(), s.path, s.req, s)
}

// Renew implements contract.Renewer. It needs neither the name nor Python: the lease keeps the memory.
func (p *Program) Renew(_ context.Context, id contract.LeaseID) (contract.Segment, int, error) {
	return p.leases.Renew(id)
}

func errEnded() error {
	return &core.Error{Op: "refresh", Kind: core.ErrUnsupported, Err: errors.New("the lease does not stand")}
}

// Leases implements handoff.Producer.
func (m *mailbox) Leases(ctx context.Context, wanted []string, req contract.Request, results []handoff.Look) []handoff.Look {
	first := len(results)
	for range wanted {
		results = append(results, handoff.Look{})
	}
	if m.state.failed() != nil {
		return results
	}
	_ = m.thread.Do(func(g *py.GIL) error { // it fails if the interpreter ends
		for i, name := range wanted {
			_ = g.Nested(func() error { // an error is for gRPC
				path, err := names.Parse(name)
				if err != nil {
					return err
				}
				l, _, err := m.grant(ctx, g, path, req, nil, true)
				results[first+i] = m.lookOf(l, true, false, err) //nolint:contextcheck // it outlives the call
				return err
			})
		}
		return nil
	})
	return results
}

// End implements handoff.Ender.
func (m *mailbox) End() { m.thread.End() }

// Offers implements handoff.Offerer.
func (m *mailbox) Offers(w *offers.Writer, c handoff.Codec) {
	if c == nil { // no host looks at offers any more
		m.codec.Store(nil)
	} else {
		m.codec.Store(&c)
	}
	m.published.Use(w)
	if m.forks != nil {
		countForks(m.heap, m.forks, false)
	}
	if m.forks = nil; w != nil {
		m.forks = w.Forks()
		countForks(m.heap, m.forks, true)
		m.offerLate()
	}
}
