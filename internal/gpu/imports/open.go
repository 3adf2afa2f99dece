package imports

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/reuse"
)

// openIPC opens a legacy handle. The driver refuses it while memory is mapped that the program has freed
// since, if the new allocation lies at the same place and has another size. So openIPC then ends the
// mappings that nobody uses.
func (c *cache) openIPC(ctx context.Context, g *gpu.Primary, h contract.CUDAIPC, a *allocation) error {
	var m *gpu.Mapping
	open := func() (err error) { m, err = gpu.OpenIPC(h.Mem, a.size); return err }
	err := g.Do(open)
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Code == driver.AlreadyMapped {
		_ = c.mapped.Trim()                           // or the driver refuses again
		if err = gpu.Streams.Flush(ctx); err != nil { // the ends may be deferred
			return refused(ctx.Err(), "segment %d: a stream waits, so that its former memory stays mapped: %w", h.ID, err)
		}
		err = g.Do(open)
	}
	if err != nil {
		return foreign(err, "segment %d", h.ID)
	}
	a.addr = m.Addr
	a.undo.add(func() error { return g.Do(m.Unmap) })
	return nil
}

// openVMM maps physical allocations side by side.
func (c *cache) openVMM(ctx context.Context, g *gpu.Primary, h contract.CUDAVMM, writable bool, a *allocation) (err error) {
	var m *gpu.Mapping
	err = g.Do(func() error { m, err = gpu.Reserve(g.Device, a.size); return err })
	if err != nil {
		return foreign(err, "room for %d bytes", a.size)
	}
	a.addr = m.Addr
	a.undo.add(func() error { return g.Do(m.Unmap) })
	for _, chunk := range h.Chunks {
		if err := c.mapChunk(ctx, g, chunk, writable, m); err != nil {
			return err
		}
	}
	err = g.Do(func() error { return m.Allow(writable) })
	if err != nil {
		return foreign(err, "access to segment %d", h.Chunks[0].ID)
	}
	return nil
}

// mapChunk maps one physical allocation.
func (c *cache) mapChunk(ctx context.Context, g *gpu.Primary, chunk contract.CUDAChunk, writable bool, m *gpu.Mapping) error {
	file, err := c.producer.Descriptor(ctx, chunk.ID, writable)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	if err = g.Do(func() error { return m.Import(file, chunk.Size) }); err != nil {
		return foreign(err, "segment %d of %d bytes", chunk.ID, chunk.Size)
	}
	return nil
}

// pool is a memory pool of another process.
type pool struct {
	handle driver.Pool
	undo   undo
	entry  *reuse.Entry[key, *pool]
}

// Size implements reuse.Resource. A pool takes no memory beside that of its allocations.
func (p *pool) Size() int64 { return 1 }

// End implements reuse.Resource.
func (p *pool) End() error { return p.undo.run() }

// openPooled opens an allocation of a pool, and the pool if need be.
func (c *cache) openPooled(ctx context.Context, g *gpu.Primary, h contract.CUDAPool, a *allocation) error {
	k := key{gpu: h.GPU, ids: text(h.Pool)}
	p, err := c.pools.Use(ctx, k, 0, func(e *reuse.Entry[key, *pool]) (*pool, error) {
		p := &pool{entry: e}
		if err := c.openPool(ctx, g, h.Pool, p); err != nil {
			_ = p.undo.run() // of what succeeded
			return nil, err
		}
		return p, nil
	})
	if err != nil {
		return err
	}
	a.undo.add(p.entry.Release)
	return g.Do(func() (err error) {
		if a.addr, err = driver.PoolImportPointer(p.handle, h.Pointer); err != nil {
			return foreign(err, "segment %d", h.ID)
		}
		// The driver does not count: to free it once would take it from both.
		if !c.claim(a.addr) {
			return refused(core.ErrProtocol, "segment %d is an allocation that is open already", h.ID)
		}
		a.undo.add(func() error {
			defer c.disclaim(a.addr)
			return g.Do(func() error { return freePooled(a.addr) })
		})
		if err := gpu.CheckRange(a.addr, a.size); err != nil {
			return foreign(err, "segment %d", h.ID)
		}
		return nil
	})
}

// freePooled frees an allocation of a pool here, and waits for that, but for no other work. The context
// is current.
func freePooled(addr uintptr) error {
	s, err := driver.StreamCreate()
	if err != nil {
		return err
	}
	return errors.Join(driver.MemFreeAsync(addr, s), driver.StreamSynchronize(s), driver.StreamDestroy(s))
}

// claim makes an allocation of a pool that of one user, if it has none.
func (c *cache) claim(addr uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.pointers[addr]
	c.pointers[addr] = struct{}{}
	return !taken
}

func (c *cache) disclaim(addr uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pointers, addr)
}

func (c *cache) openPool(ctx context.Context, g *gpu.Primary, id contract.SegmentID, p *pool) error {
	file, err := c.producer.Descriptor(ctx, id, false)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the pool does not need it, and nothing was written
	return g.Do(func() error {
		err := gpu.WithFD(file, func(fd int) (err error) { p.handle, err = driver.PoolImport(fd); return err })
		if err != nil {
			return foreign(err, "pool %d", id)
		}
		p.undo.add(func() error {
			return g.Do(func() error { return driver.PoolDestroy(p.handle) })
		})
		return nil
	})
}

// foreign says of what the driver refused that it came from the other process. What is not that
// one's fault, as a lack of memory, keeps its category.
func foreign(err error, format string, args ...any) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return refused(e.Kind, format+": %w", append(args, e.Err)...)
	}
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	out := refused(nil, format+": %w", append(args, e)...).(*core.Error) //nolint:errcheck,errorlint // made so
	switch e.Code {
	case driver.InvalidValue, driver.InvalidHandle, driver.InvalidDevice, driver.InvalidContext,
		driver.OperatingSystem, driver.NotSupported, driver.Unknown: // as it says of other files and sizes
		out.Kind = core.ErrPointer
	default:
		out.Kind = e.Kind()
	}
	return out
}
