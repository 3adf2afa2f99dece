package routes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/files"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Heap is a heap whose memory other processes can map: that of internal/sharedheap, or a fake.
type Heap interface {
	// Pin finds the live block that addr lies in, and keeps its memory from being used again until
	// Unpin, even if the program frees it; for another process to write to, if writable. A block that cannot
	// be shared, or was freed, is described, but not pinned.
	Pin(addr uintptr, writable bool) (b HeapBlock, ok bool)
	// Unpin takes back one Pin of the block that addr lies in, which gave this segment.
	Unpin(addr uintptr, segment uint64)
	// Repin moves one Pin of the block that addr lies in from the segment that it gave to the file that the block lies in
	// now. Of a block that a fork has made private it says so, and moves nothing: Promote comes first. It reports false if
	// the program has freed what was pinned.
	Repin(addr uintptr, segment uint64, writable bool) (b HeapBlock, ok bool)
	// Promote makes the block that addr lies in one that can be shared, if a fork has made it private, or the memory that
	// Outside knows. The program may go on writing to it, but no device may. It reports whether it did: what it cannot do
	// it leaves as it is.
	Promote(addr uintptr, policy contract.PromotePolicy) bool
	// Promotes reports whether the policy and the kernel allow Promote at all.
	Promotes(policy contract.PromotePolicy) bool
	// Outside reports whether the array of n bytes at addr fills memory outside the heap that can be promoted. It knows that
	// memory from then on, until the program frees it. With due, it also answers false while a copy is the better choice.
	Outside(addr uintptr, n int64, due bool) bool
	// Copied says that an array at addr, outside the heap, was copied: one copy is a better choice than to promote it.
	Copied(addr uintptr)
	// Refuse says that the memory at addr, outside the heap, was not promoted: a copy is the better choice for a while.
	Refuse(addr uintptr)
	// Threshold is the size in bytes from which on the heap takes memory.
	Threshold() int64
	// Works reports whether the heap takes any memory now. A program that limits itself switches it off.
	Works() bool
}

// HeapBlock is one block of a [Heap].
type HeapBlock struct {
	Backing   kit.Backing // the file it lies in; closing it does nothing. Nil if the block cannot be shared
	Segment   uint64      // which file that is, for Unpin
	Offset    int64       // of the address that was asked for, in the file; in the block, if a fork has made it private
	Available int64       // bytes from that address to the end of the block
	Reason    core.Reason // why the block cannot be shared; "": it can
	Freed     bool        // there is no live block: the address is the heap's, and that is all
	Outside   bool        // there is none yet, but [Heap.Promote] may make one, or does: what is mapped there means nothing
}

// Router decides how an array of this process reaches another one. Its methods are safe for
// concurrent use.
type Router struct {
	GPU export.Exporter // queues that frameworks can be given, and marks

	heap    Heap // nil: there is none
	staging Staging
	maps    shm.Mappings

	hostGPUs  []contract.UUID
	copyFiles bool
	promote   contract.PromotePolicy
}

// NewRouter makes a router. heap may be nil. The caller must Close it, after the last placement was
// dropped.
func NewRouter(heap Heap) *Router { return &Router{heap: heap} }

// Hold opens what later may be out of reach: a program may leave /proc behind (chroot), or use up its descriptors.
func (r *Router) Hold() { r.maps.Hold() }

// Configure takes from the host's settings which GPUs it can map memory of, whether arrays in mapped files that can shrink are
// copied, and when memory that exists is made shareable. It is called before the first array is placed.
func (r *Router) Configure(s contract.Settings) {
	r.hostGPUs, r.copyFiles, r.promote = s.GPUs, s.CopyMappedFiles, s.Promote
}

// Close gives up the memory that the router keeps for copies.
func (r *Router) Close() error {
	r.maps.Close()
	return errors.Join(r.GPU.Close(), r.staging.Close())
}

// Want is how an array is wanted.
type Want struct {
	Writable bool
	NoCopy   bool
	// Reason, if it is not "", says that the memory cannot be shared even where a route
	// would be found, and why.
	Reason core.Reason
	// Spared, if it is not "", says that the memory is that of a copy which the framework made for the lease, and why.
	Spared core.Reason
	// Kept reports whether an object keeps the memory, and gives it back when it goes. nil: none does.
	Kept func() bool
}

// Placement is how an array reaches another process: what [kit.Leases.Grant] needs.
type Placement struct {
	Layout core.Layout // relative to the memory's first byte
	Memory kit.Memory
	Route  core.Route
	Reason core.Reason
	Drop   func()  // nil, or to be called exactly once when the memory is not needed any more
	Copied *Copied // the copy in host memory; nil: there is none
}

// GiveUp gives back what stands behind a placement that no lease is made of.
func (p *Placement) GiveUp() (err error) {
	for _, b := range p.Memory.Parts {
		err = errors.Join(err, b.Close())
	}
	if p.Drop != nil {
		p.Drop()
	}
	return err
}

// Reserve gets memory for [Router.Stage]: see [Staging.Reserve].
func (r *Router) Reserve(a Array) (*Room, error) { return r.staging.Reserve(a) }

// Put places an array that a producer has made itself: see [Staging.Put].
func (r *Router) Put(data []byte, l core.Layout, reason core.Reason) (Placement, error) {
	c, err := r.staging.Put(data, l)
	return staged(c, reason), err
}

// Stage places an array by copying it, for a reason that Share gave: into room, which it takes over, unless
// that is nil.
func (r *Router) Stage(ctx context.Context, a Array, reason core.Reason, room *Room) (Placement, error) {
	c, err := r.staging.Copy(ctx, a, room)
	if err != nil {
		return Placement{}, err
	}
	return staged(c, reason), nil
}

func staged(c Copied, reason core.Reason) Placement {
	if c.Backing == nil {
		return Placement{}
	}
	return Placement{
		Layout: c.Layout, Memory: kit.HostMemory(c.Backing), Route: contract.RouteStaged, Reason: reason, Drop: c.Drop, Copied: &c,
	}
}

// Share finds the way for an array, which must stay alive until it returns. Where a copy is needed and wanted, it gives the
// reason and no placement, and [Router.Stage] does the rest. Whether the memory is there is checked. It takes microseconds,
// however large the array is.
//
// It wraps core.ErrReadOnly if the array is wanted writable and may not be written;
// core.ErrNotShared, with the reason, if only a copy could cross and that is not wanted;
// core.ErrPointer if the memory is not there; core.ErrDevice if the CPU cannot read it.
func (r *Router) Share(a Array, want Want) (p Placement, reason core.Reason, err error) {
	if p, reason, err = r.share(a, want); err != nil || reason == "" {
		return p, "", err
	}
	if want.NoCopy || want.Writable {
		return Placement{}, "", notShared(reason, want, r.remedies(a, reason, want)...)
	}
	return Placement{}, reason, nil
}

// Promotable reports whether to try Promote on an array that Share has refused to share, for a reason. What lies outside the heap is
// promoted when a host looks again, or takes no copy; where the heap came late, only if an object keeps it: what is freed otherwise may go unseen.
func (r *Router) Promotable(a Array, reason core.Reason, want Want) bool {
	return r.movable(a, reason, want) && r.heap.Promotes(r.promote)
}

// movable reports whether there is a block to promote, be it allowed or not.
func (r *Router) movable(a Array, reason core.Reason, want Want) bool {
	switch lo, n, _, err := a.extent(); {
	case err != nil || r.heap == nil:
		return false
	case liesOutside(reason):
		return (reason != contract.ReasonHeapOff || n >= r.heap.Threshold() && want.Kept != nil && want.Kept()) && r.heap.Outside(lo, n, !want.NoCopy && !want.Writable)
	default:
		return reason == contract.ReasonFrozen
	}
}

// liesOutside reports whether a reason says that memory is none of the heap's, which may take no memory now.
func liesOutside(reason core.Reason) bool {
	return reason == contract.ReasonOutsideHeap || reason == contract.ReasonHeapOff
}

// Copied says that an array was copied that Share has refused to share, for a reason.
func (r *Router) Copied(a Array, reason core.Reason) {
	if !liesOutside(reason) || r.heap == nil {
		return
	}
	if lo, _, _, err := a.extent(); err == nil {
		r.heap.Copied(lo)
	}
}

// Promote makes the memory of an array shareable that is [Router.Promotable], and reports
// whether it did. It takes up to a second for a GiB. No device may write to the memory meanwhile. It refuses where the
// whole block would not fit into memory a second time: the kernel would end the program, or another one.
func (r *Router) Promote(a Array) bool {
	lo, n, _, err := a.extent()
	if err != nil {
		return false
	}
	b := r.described(lo)
	switch {
	case b.Backing != nil: // another request has promoted it
		return true
	case b.Reason == contract.ReasonFrozen:
		return forPromotion.take(b.Offset+b.Available, true) && r.heap.Promote(lo, r.promote)
	case b.Freed, b.Reason != "":
		return false
	}
	promoted := forPromotion.take(n, false) && r.heap.Promote(lo, r.promote) || // its memory is less than two pages larger
		r.described(lo).Backing != nil // another one did, while this one waited for it
	if !promoted {
		r.heap.Refuse(lo)
	}
	return promoted
}

// described is the block at an address, which is not pinned.
func (r *Router) described(lo uintptr) HeapBlock {
	b, _ := r.heap.Pin(lo, false)
	if b.Backing != nil {
		r.heap.Unpin(lo, b.Segment)
	}
	return b
}

func (r *Router) share(a Array, want Want) (p Placement, reason core.Reason, err error) {
	switch l := a.Layout; {
	case want.Writable && l.ReadOnly():
		return p, "", readOnlyError()
	case l.Len() == 0:
		l, err := at(l, 0, false)
		return Placement{Layout: l, Route: contract.RouteEmpty}, "", err
	case !l.Device().HostReadable():
		return p, "", &core.Error{
			Op: "lease", Kind: core.ErrDevice,
			Err: fmt.Errorf("the CPU cannot read %v", l.Device()),
		}
	case want.Reason != "":
		return p, want.Reason, nil
	}
	lo, n, first, err := a.extent()
	if err != nil {
		return p, "", err
	}
	if r.heap != nil {
		if b, ok := r.heap.Pin(lo, want.Writable); ok {
			return r.placeBlock(a, b, lo, n, first)
		}
	}
	m, ok, err := r.maps.Covering(lo, n)
	switch {
	case err != nil:
		return p, "", &core.Error{Op: "lease", Kind: core.ErrUnavailable, Err: err}
	case !ok:
		return p, "", pointerError(lo, "nothing is mapped there")
	case m.Anonymous():
		return p, r.whyOutside(n), nil
	case !m.Shared:
		return p, contract.ReasonPrivateMapping, nil
	}
	return r.placeFile(a, m, want, lo, n, first)
}

func (r *Router) whyOutside(n int64) core.Reason {
	switch {
	case r.heap == nil, !r.heap.Works():
		return contract.ReasonHeapOff
	case n < r.heap.Threshold():
		return contract.ReasonBelowThreshold
	default:
		return contract.ReasonOutsideHeap
	}
}

func (r *Router) placeBlock(
	a Array, b HeapBlock, lo uintptr, n int64, first int,
) (p Placement, reason core.Reason, err error) {
	pin := &pin{heap: r.heap, policy: r.promote, lo: lo, n: n, segment: b.Segment, offset: b.Offset}
	switch {
	case b.Outside:
		return p, r.whyOutside(n), nil
	case b.Freed:
		return p, "", pointerError(lo, "the program has freed what was there, or never allocated it")
	case n > b.Available:
		if b.Reason == "" {
			pin.drop()
		}
		return p, "", pointerError(lo, "the array reaches %d bytes from there, its block only %d", n, b.Available)
	case b.Reason != "":
		return p, b.Reason, nil
	}
	l, err := at(a.Layout, b.Offset+int64(first), false)
	if err != nil {
		pin.drop()
		return p, "", err
	}
	memory := kit.HostMemory(b.Backing)
	memory.Moves = pin
	return Placement{Layout: l, Memory: memory, Route: contract.RouteSharedHeap, Drop: pin.drop}, "", nil
}

// placeFile places an array that lies in a shared mapping of a file.
func (r *Router) placeFile(
	a Array, m shm.Mapped, want Want, lo uintptr, n int64, first int,
) (p Placement, reason core.Reason, err error) {
	f, err := r.maps.Open(m)
	switch {
	case errors.Is(err, shm.ErrNotRegular):
		return p, contract.ReasonOutsideHeap, nil // the CUDA driver maps its device piece by piece
	case int64(m.End-lo) < n:
		err = pointerError(lo, "the array reaches %d bytes from there, the mapping of %s only %d",
			n, m.Path, m.End-lo)
	case want.Writable && !m.Writable:
		err = readOnlyError()
	case err != nil:
		return p, contract.ReasonFileGone, nil //nolint:nilerr // a copy will do
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, shm.Close(f))
		}
		return p, "", err
	}
	b, err := files.New(f)
	if err != nil {
		return p, "", errors.Join(err, shm.Close(f))
	}
	// Until here b is ours; a placement hands it on.
	offset := m.Offset + int64(lo-m.Start)
	l, err := at(a.Layout, offset+int64(first), !m.Writable)
	switch {
	case err != nil:
	case offset+n > b.Size():
		err = pointerError(lo, "%s ends at byte %d now, and the array at %d; it was truncated",
			m.Path, b.Size(), offset+n)
	case r.copyFiles && !b.Sealed():
		return p, contract.ReasonMappedFile, b.Close()
	case want.Writable:
		err = b.CheckWritable()
	}
	if err != nil {
		return p, "", errors.Join(err, b.Close())
	}
	return Placement{Layout: l, Memory: kit.HostMemory(b), Route: contract.RouteMappedFile}, "", nil
}

func readOnlyError() error {
	return &core.Error{
		Op: "lease", Kind: core.ErrReadOnly,
		Err:    errors.New("the array may not be written"),
		Remedy: "take a read-only view, or give the host a writable array",
	}
}

// usualRemedy says what can be done about each reason.
var usualRemedy = map[core.Reason]string{
	contract.ReasonBelowThreshold: "take it from a larger array, or lower the shared heap's threshold",
	contract.ReasonOutsideHeap:    "copy it into a new array in the program",
	contract.ReasonHeapOff:        "run the program with the shared heap, as ndbridge run --share does",
	contract.ReasonFrozen:         "make the array anew after the fork",
	contract.ReasonPrivateMapping: `map the file as shared, as numpy.memmap does with mode "r" and "r+"`,
	contract.ReasonFileGone:       "keep the mapped file in its place",
	contract.ReasonConverted:      "publish an array that needs no conversion",
	contract.ReasonNotExportable:  "allocate it where the driver can export memory: by cudaMalloc, or from a pool that is made for IPC",
	contract.ReasonHostWithoutGPU: "run the host where it can reach the GPU, built with CUDA",
	contract.ReasonMayBeDonated:   `publish the array, or set effect = "hold" for the quirk jax.may-be-donated`,
	contract.ReasonMappedFile:     `copy it into a new array in the program, or set mapped_files = "share"`,
}

// remedies says what else than the usual helps: leave to promote the array, if that is all that is missing.
func (r *Router) remedies(a Array, reason core.Reason, want Want) []string {
	if r.movable(a, reason, want) && !r.heap.Promotes(r.promote) && r.heap.Promotes(contract.PromoteAlways) {
		return []string{`set promote = "always" for the program`}
	}
	return nil
}

// notShared is the error for an array that only a copy could give, and that is not wanted. others are remedies beside the usual one.
func notShared(reason core.Reason, want Want, others ...string) error {
	if !want.Writable { // to write into a copy would be useless
		others = append([]string{"allow the copy"}, others...)
	}
	remedy := usualRemedy[reason]
	if len(others) > 0 {
		remedy = strings.Join(others, ", ") + ", or " + remedy
	}
	return &core.Error{Op: "lease", Kind: core.ErrNotShared, Reason: reason, Remedy: remedy}
}
