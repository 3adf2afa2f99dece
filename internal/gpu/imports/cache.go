package imports

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/reuse"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// What no view uses any more stays open for idleTime. An open allocation keeps the program's memory
// from being freed, so there are limits to their number and size.
const (
	idleTime  = 5 * time.Second
	idleCount = 64
	idleBytes = 1 << 30
)

// cache holds the allocations, pools and pages of one producer that are open. All methods are safe for
// concurrent use.
type cache struct {
	producer shm.Describer
	mapped   *reuse.Cache[key, *allocation] // allocations that may stay open longer than their leases
	pooled   *reuse.Cache[key, *allocation] // those that may not
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

// newCache makes a cache. It must be closed.
func newCache(producer shm.Describer) *cache {
	limits := reuse.Limits{Time: idleTime, Count: idleCount, Bytes: idleBytes}
	return &cache{
		producer: producer,
		mapped:   reuse.New[key, *allocation](limits),
		// The driver wants an allocation of a pool freed here before its owner frees it.
		pooled: reuse.New[key, *allocation](reuse.Limits{}),
		pools:  reuse.New[key, *pool](limits),
		pages:  reuse.New[contract.SegmentID, *page](limits),

		pointers: make(map[uintptr]struct{}),
	}
}

// close closes what nobody uses. The rest closes with its last user. It is idempotent.
func (c *cache) close() error {
	var first error
	for _, end := range []func() error{c.mapped.Close, c.pooled.Close, c.pools.Close, c.pages.Close} {
		if err := end(); first == nil {
			first = err
		}
	}
	return first
}

// allocation is GPU memory of another process, open in this one. Its users share it.
type allocation struct {
	addr   uintptr
	size   int64
	pooled bool
	lent   bool // it is this process's own, and its owner ends it
	undo   undo
	entry  *reuse.Entry[key, *allocation]
}

// Size implements reuse.Resource.
func (a *allocation) Size() int64 { return a.size }

// close ends one use.
func (a *allocation) close() error {
	switch {
	case a.lent:
		return nil
	case a.entry == nil: // the owner of memory of this process's own
		return a.End()
	default:
		return a.entry.Release()
	}
}

// End implements reuse.Resource. The call that unmaps memory may wait for all streams. An allocation of a
// pool is freed without that, and must be before its owner frees it.
func (a *allocation) End() error {
	if a.pooled {
		return a.undo.run()
	}
	return gpu.Streams.Make(a.undo.run)
}

// open opens the memory that a standing lease's handle names, on the GPU that it names. The caller closes
// it once. The error wraps core.ErrProtocol or core.ErrPointer if a claim of the producer is false.
func (c *cache) open(ctx context.Context, g *gpu.Primary, handle contract.Handle, writable bool) (*allocation, error) {
	if handle.Extent() <= 0 {
		return nil, refused(core.ErrProtocol, "memory of %d bytes", handle.Extent())
	}
	cache, k := c.mapped, key{}
	var open func(*allocation) error
	switch h := handle.(type) {
	case contract.CUDAIPC:
		k.gpu, k.ids = h.GPU, "ipc"+text(h.ID)
		open = func(a *allocation) error { return c.openIPC(ctx, g, h, a) }
	case contract.CUDAVMM:
		k.gpu, k.ids, k.writable = h.GPU, "vmm", writable
		for _, chunk := range h.Chunks {
			if chunk.Size <= 0 {
				return nil, refused(core.ErrProtocol, "segment %d of %d bytes", chunk.ID, chunk.Size)
			}
			k.ids += text(chunk.ID) + "/" + strconv.FormatInt(chunk.Size, 10) + ","
		}
		open = func(a *allocation) error { return c.openVMM(ctx, g, h, writable, a) }
	case contract.CUDAPool:
		cache, k.gpu, k.ids = c.pooled, h.GPU, "pool"+text(h.ID)
		open = func(a *allocation) error { return c.openPooled(ctx, g, h, a) }
	default:
		return nil, refused(core.ErrProtocol, "a handle of type %T", handle)
	}
	return cache.Use(ctx, k, handle.Extent(), func(e *reuse.Entry[key, *allocation]) (*allocation, error) {
		a := &allocation{size: handle.Extent(), pooled: cache == c.pooled, entry: e}
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
