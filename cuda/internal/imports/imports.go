// Package imports opens GPU memory of another process, and the words that order work on it: each thing
// once, shared by all who use it, and kept for a while after the last one. Nothing that the other
// process says is believed.
package imports

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
	"github.com/ndbridge/ndbridge/internal/reuse"
)

// What no view uses any more stays open for idleTime. An open allocation keeps the program's memory
// from being freed, so there are limits to their number and size.
const (
	idleTime  = 5 * time.Second
	idleCount = 64
	idleBytes = 1 << 30
)

// Describer lends the descriptors of segments: the part of contract.Producer that this package needs.
type Describer interface {
	Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error)
}

// Cache holds what is open of one producer. All methods are safe for concurrent use.
type Cache struct {
	producer Describer
	mapped   *reuse.Cache[key, *Allocation] // allocations that may stay open longer than their leases
	pooled   *reuse.Cache[key, *Allocation] // those that may not
	pools    *reuse.Cache[key, *pool]
	pages    *reuse.Cache[contract.SegmentID, *page]

	mu       sync.Mutex
	pointers map[uintptr]struct{} // allocations of pools that are open
}

// key names what is open. Where the driver can keep kernels from writing (VMM), a mapping that may be
// written is never used for views that may not write.
type key struct {
	gpu      contract.UUID
	ids      string
	writable bool
}

// New makes a cache. It must be closed.
func New(producer Describer) *Cache {
	limits := reuse.Limits{Time: idleTime, Count: idleCount, Bytes: idleBytes}
	return &Cache{
		producer: producer,
		mapped:   reuse.New[key, *Allocation](limits),
		// The driver wants an allocation of a pool freed here before its owner frees it.
		pooled: reuse.New[key, *Allocation](reuse.Limits{}),
		pools:  reuse.New[key, *pool](limits),
		pages:  reuse.New[contract.SegmentID, *page](limits),

		pointers: make(map[uintptr]struct{}),
	}
}

// Close closes what nobody uses. The rest is closed with its last user. It is idempotent.
func (c *Cache) Close() error {
	var first error
	for _, end := range []func() error{c.mapped.Close, c.pooled.Close, c.pools.Close, c.pages.Close} {
		if err := end(); first == nil {
			first = err
		}
	}
	return first
}

// Allocation is GPU memory of another process, open in this one. Its users share it.
type Allocation struct {
	addr   uintptr
	size   int64
	pooled bool
	undo   undo
	entry  *reuse.Entry[key, *Allocation]
}

// Addr is the address of the first byte on the device.
func (a *Allocation) Addr() uintptr { return a.addr }

// Size implements reuse.Resource.
func (a *Allocation) Size() int64 { return a.size }

// Close ends one use.
func (a *Allocation) Close() error { return a.entry.Release() }

// End implements reuse.Resource. To unmap memory may wait for all streams; an allocation of a pool comes
// free without that, and must, before its owner frees it.
func (a *Allocation) End() error {
	if a.pooled {
		return a.undo.run()
	}
	return primary.Streams.Make(a.undo.run)
}

// Open gives the memory that a standing lease's handle names, on the GPU that it names. Who gets it
// calls Close once. An error that wraps core.ErrProtocol or core.ErrPointer says that the producer lied.
func (c *Cache) Open(ctx context.Context, gpu *primary.GPU, handle contract.Handle, writable bool) (*Allocation, error) {
	if handle.Extent() <= 0 {
		return nil, refused(core.ErrProtocol, "memory of %d bytes", handle.Extent())
	}
	cache, k := c.mapped, key{}
	var open func(*Allocation) error
	switch h := handle.(type) {
	case contract.CUDAIPC:
		k.gpu, k.ids = h.GPU, "ipc"+text(h.ID)
		open = func(a *Allocation) error { return a.openIPC(gpu, h) }
	case contract.CUDAVMM:
		k.gpu, k.ids, k.writable = h.GPU, "vmm", writable
		for _, chunk := range h.Chunks {
			if chunk.Size <= 0 {
				return nil, refused(core.ErrProtocol, "segment %d of %d bytes", chunk.ID, chunk.Size)
			}
			k.ids += text(chunk.ID) + "/" + strconv.FormatInt(chunk.Size, 10) + ","
		}
		open = func(a *Allocation) error { return c.openVMM(ctx, gpu, h, writable, a) }
	case contract.CUDAPool:
		cache, k.gpu, k.ids = c.pooled, h.GPU, "pool"+text(h.ID)
		open = func(a *Allocation) error { return c.openPooled(ctx, gpu, h, a) }
	default:
		return nil, refused(core.ErrProtocol, "a handle of type %T", handle)
	}
	return cache.Use(ctx, k, handle.Extent(), func(e *reuse.Entry[key, *Allocation]) (*Allocation, error) {
		a := &Allocation{size: handle.Extent(), pooled: cache == c.pooled, entry: e}
		if err := open(a); err != nil {
			_ = a.End() // of what succeeded
			return nil, err
		}
		return a, nil
	})
}

func text(id contract.SegmentID) string { return strconv.FormatUint(uint64(id), 10) }

// undo holds what to do to close something, in the order in which it was opened.
type undo []func() error

func (u *undo) add(f func() error) { *u = append(*u, f) }

// run does it all, the last thing first, and gives the first error.
func (u *undo) run() error {
	var first error
	for _, f := range slices.Backward(*u) {
		if err := f(); first == nil {
			first = err
		}
	}
	*u = nil
	return first
}

func refused(kind error, format string, args ...any) error {
	return &core.Error{Op: "import", Kind: kind, Err: fmt.Errorf(format, args...)}
}
