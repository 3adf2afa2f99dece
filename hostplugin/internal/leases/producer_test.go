package leases

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// What the world's program answers, by gRPC and by the mailbox.

// lease describes an array.
func (w *world) lease(a *array, writable bool) contract.Lease {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int64, Shape: a.shape})
	if err != nil {
		w.t.Error(err)
	}
	lease := contract.Lease{
		Layout: l, Handle: contract.Segment{ID: contract.SegmentID(a.file + 1), Size: 4096, Sealed: true}, Fence: contract.Ready{},
		Framework: "numpy", Route: contract.RouteSharedHeap, Writable: writable,
	}
	if a.version > 0 {
		lease.Version, lease.Published = a.version, time.Unix(0, a.at.UnixNano())
	}
	if a.copied {
		lease.Route, lease.Reason = contract.RouteStaged, contract.ReasonHeapOff
	}
	return lease
}

// grant makes a lease. The caller holds the lock.
func (w *world) grant(name string, req contract.Request) (contract.Lease, error) {
	a := w.arrays[name]
	switch {
	case w.refused != nil:
		return contract.Lease{}, w.refused
	case a == nil:
		return contract.Lease{}, &core.Error{Op: "lease", Kind: core.ErrNotFound}
	case a.copied && (req.Writable || req.Copy == contract.CopyNever):
		return contract.Lease{}, &core.Error{Op: "lease", Kind: core.ErrNotShared, Reason: contract.ReasonHeapOff}
	}
	lease := w.lease(a, req.Writable)
	w.last++
	lease.ID = w.last
	w.standing[lease.ID], w.names[lease.ID] = lease, name
	if w.granted != nil {
		f := w.granted
		w.mu.Unlock()
		f(&lease)
		w.mu.Lock()
	}
	return lease, nil
}

// again looks at a lease again. The caller holds the lock.
func (w *world) again(id contract.LeaseID, only bool) (l contract.Lease, changed bool, err error) {
	before, stands := w.standing[id]
	if !stands {
		return l, false, &core.Error{Op: "refresh", Kind: core.ErrUnsupported}
	}
	name := w.names[id]
	a := w.arrays[name]
	if w.sameLeases {
		return before, true, nil
	}
	if a != nil && w.refused == nil && before.Handle == (contract.Segment{ID: contract.SegmentID(a.file + 1), Size: 4096, Sealed: true}) &&
		before.Version == a.version {
		before.Fence = contract.Ready{}
		return before, false, nil
	}
	if only && a != nil {
		return l, true, nil
	}
	l, err = w.grant(name, contract.Request{Writable: before.Writable})
	return l, true, err
}

// Lease implements Program.
func (w *world) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "lease "+name)
	for !req.NoWait && w.arrays[name] == nil && w.refused == nil {
		w.mu.Unlock()
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		if ctx.Err() != nil {
			return contract.Lease{}, &core.Error{Op: "lease", Kind: ctx.Err()}
		}
	}
	return w.grant(name, req)
}

// Refresh implements Program.
func (w *world) Refresh(_ context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "refresh "+w.names[id])
	if !w.able {
		return contract.Lease{}, false, &core.Error{Op: "refresh", Kind: core.ErrUnsupported}
	}
	return w.again(id, false)
}

// Renew implements Program.
func (w *world) Renew(ctx context.Context, leases []contract.Renewal) {
	if w.renewing != nil {
		defer w.renewing(leases)
	}
	for i := range leases {
		l := &leases[i]
		if l.Segment, l.Offset, l.Err = w.renew(l.Lease); l.Err == nil && l.Segment.ID != l.Has {
			l.File, l.Err = w.Descriptor(ctx, l.Segment.ID, l.Writable)
		}
	}
}

func (w *world) renew(id contract.LeaseID) (contract.Segment, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lease, stands := w.standing[id]
	if !w.renews || !stands {
		return contract.Segment{}, 0, &core.Error{Op: "renew", Kind: core.ErrUnsupported}
	}
	if file, moved := w.moved[id]; moved {
		delete(w.moved, id)
		lease.Handle = contract.Segment{ID: contract.SegmentID(file + 1), Size: 4096, Sealed: true}
		w.standing[id] = lease
	}
	a := w.arrays[w.names[id]]
	s, _ := lease.Handle.(contract.Segment)
	switch {
	case a != nil && a.copied:
		return contract.Segment{}, 0, &core.Error{Op: "renew", Kind: core.ErrNotShared, Reason: contract.ReasonFrozen, Remote: true}
	case a == nil || s.ID != contract.SegmentID(a.file+1): // it was freed
		return contract.Segment{}, 0, &core.Error{Op: "renew", Kind: core.ErrPointer, Remote: true}
	}
	return s, lease.Layout.Offset(), nil
}

// Release implements Program and handoff.Producer.
func (w *world) Release(_ context.Context, ids ...contract.LeaseID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		delete(w.standing, id)
	}
	return nil
}

// Leases implements handoff.Producer.
func (w *world) Leases(_ context.Context, names []string, req contract.Request, results []handoff.Look) []handoff.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.mailed = append(w.mailed, "lease "+name)
		l, err := contract.Lease{}, errors.New("silent")
		if !w.silent {
			l, err = w.grant(name, req)
		}
		if err != nil {
			results = append(results, handoff.Look{})
			continue
		}
		results = append(results, handoff.Look{Status: handoff.Changed, Lease: &l})
	}
	return results
}

// Refreshes implements handoff.Producer.
func (w *world) Refreshes(_ context.Context, ids []contract.LeaseID, only bool, results []handoff.Look) []handoff.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if len(w.mailed) < cap(w.mailed) {
			w.mailed = append(w.mailed, "refresh "+w.names[id])
		}
		look := handoff.Look{}
		if _, private := w.moved[id]; w.able && !w.silent && !private { // to share it again takes long
			switch l, changed, err := w.again(id, only); {
			case err != nil:
			case changed:
				granted := l
				look = handoff.Look{Status: handoff.Changed, Lease: &granted}
			default:
				look.Status = handoff.Unchanged
			}
		}
		results = append(results, look)
	}
	return results
}

// Offers implements handoff.Offerer.
func (w *world) Offers(table *offers.Writer, _ handoff.Codec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if table != nil {
		w.writer = table
	}
}

// Descriptor implements shm.Describer.
func (w *world) Descriptor(_ context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id < 1 || int(id) > len(w.files) {
		return nil, &core.Error{Op: "descriptor", Kind: core.ErrNotFound}
	}
	if writable {
		return shm.ReadWrite(w.files[id-1])
	}
	return shm.ReadOnly(w.files[id-1])
}

// codec sends leases by their number: both sides are here.
type codec struct{ *world }

func (codec) Append(b []byte, l *contract.Lease) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(b, uint64(l.ID)), nil
}

func (c codec) Lease(b []byte, req contract.Request) (contract.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.standing[c.ID(b)]
	if !ok {
		l, ok = c.described[c.ID(b)]
	}
	if !ok {
		return l, errors.New("no lease")
	}
	return l, l.Check(req)
}

func (codec) ID(b []byte) contract.LeaseID { return contract.LeaseID(binary.LittleEndian.Uint64(b)) }
