package export

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// How much memory of GPUs is kept for the next copy. It is the program's that is missing meanwhile.
const (
	warmBytes  = 64 << 20
	warmBlocks = 16
	minBlock   = 2 << 20 // physical allocations are not smaller
)

// staging is memory of GPUs for copies.
type staging struct {
	mu     sync.Mutex
	closed bool
	warm   []*Block // not in use, the oldest first
	late   []*Block // given back before their copy was made
}

// Block is memory of an exporter's own, for a copy of an array that cannot be exported. It is exported
// itself.
type Block struct {
	Addr   uintptr
	Size   int64
	export Memory
	place  *place
	copied *Word // nil: the copy is there

	// Of memory that lies behind a descriptor; else it was allocated as a whole.
	memory driver.MemHandle
	file   *os.File
	mapped bool
}

// Allocate makes room for a copy by the queue. It wraps [core.ErrNotShared] if no memory of the queue's
// device can be exported, and [core.ErrUnavailable] if the device has no room.
func (x *Exporter) Allocate(q *Queue, size int64) (*Block, error) {
	if b := x.staging.take(q.place, size); b != nil {
		return b, nil
	}
	var b *Block
	err := q.place.in(func() (err error) {
		b, err = allocate(q.place, size)
		return err
	})
	if err == nil {
		return b, nil
	}
	e := &core.Error{Op: "stage", Kind: core.ErrUnavailable, Err: err}
	if d, ok := errors.AsType[*driver.Error](err); ok && d.Code == driver.OutOfMemory {
		e.Err = fmt.Errorf("a copy of %d bytes on %v: %w", size, core.Device{Kind: core.CUDA, Index: q.place.device.Index}, err)
		e.Remedy = "free memory of the GPU, or close views of copies"
	} else {
		e.Kind, e.Reason = core.ErrNotShared, contract.ReasonNotExportable
	}
	return nil, e
}

// allocate is called in the place's context.
func allocate(p *place, size int64) (*Block, error) {
	b := &Block{place: p, Size: size}
	switch {
	case p.device.VMM:
		return b, b.mapMemory()
	case p.device.IPC:
		var err error
		if b.Addr, err = driver.MemAlloc(size); err != nil {
			return nil, err
		}
		mem, err := driver.IPCGetMemHandle(b.Addr)
		if err != nil {
			return nil, errors.Join(err, driver.MemFree(b.Addr))
		}
		b.export = Memory{
			Handle: contract.CUDAIPC{Size: size, GPU: p.device.UUID, Mem: mem},
			Parts:  []Part{{Key: b, Size: size}},
			Base:   b.Addr,
		}
		return b, nil
	default:
		return nil, errors.New("the device exports no memory")
	}
}

// mapMemory gives the block physical memory that has a descriptor.
func (b *Block) mapMemory() (err error) {
	d := driver.Device(b.place.device.Index)
	granularity, err := driver.MemGranularity(d)
	if err != nil {
		return err
	}
	b.Size = (b.Size + granularity - 1) / granularity * granularity
	if b.memory, err = driver.MemCreate(d, b.Size); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.free())
		}
	}()
	fd, err := driver.MemExport(b.memory)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "cuda-copy")
	b.export = Memory{
		Handle: contract.CUDAVMM{GPU: b.place.device.UUID, Chunks: []contract.CUDAChunk{{Size: b.Size}}},
		Parts: []Part{{
			Key: b, Size: b.Size, open: func() (*os.File, error) { return duplicate(f) },
		}},
	}
	b.file = f
	if b.Addr, err = driver.MemAddressReserve(b.Size); err != nil {
		return err
	}
	b.export.Base = b.Addr
	if err = driver.MemMap(b.Addr, b.Size, b.memory); err != nil {
		return err
	}
	b.mapped = true
	return driver.MemSetAccess(b.Addr, b.Size, d, true)
}

// Memory gives the block's handle. Its parts hold nothing: the block does.
func (b *Block) Memory() Memory { return b.export }

// Copied says which word is reached when the copy is there; nil if it is there already.
func (b *Block) Copied(w *Word) { b.copied = w }

// free is called in the place's context, if that is still there.
func (b *Block) free() error {
	if b.memory == 0 {
		return driver.MemFree(b.Addr)
	}
	var errs []error
	if b.mapped {
		errs = append(errs, driver.MemUnmap(b.Addr, b.Size))
	}
	if b.Addr != 0 {
		errs = append(errs, driver.MemAddressFree(b.Addr, b.Size))
	}
	if b.file != nil {
		errs = append(errs, b.file.Close())
	}
	return errors.Join(append(errs, driver.MemRelease(b.memory))...)
}

// Free gives the block back. Nobody outside uses it any more.
func (x *Exporter) Free(b *Block) { x.staging.put(b) }

// take finds a block that fits, and is not much larger.
func (s *staging) take(p *place, size int64) (found *Block) {
	s.mu.Lock()
	s.sort()
	for i, b := range slices.Backward(s.warm) {
		if b.place == p && b.Size >= size && b.Size <= max(2*size, minBlock) {
			s.warm = slices.Delete(s.warm, i, i+1)
			found = b
			break
		}
	}
	drop := s.excess()
	s.mu.Unlock()
	freeAll(drop)
	return found
}

func (s *staging) put(b *Block) {
	s.mu.Lock()
	s.late = append(s.late, b)
	s.sort()
	drop := s.excess()
	s.mu.Unlock()
	freeAll(drop)
}

// close frees all blocks but those that a stream is yet to copy to, which stay where they are.
func (s *staging) close() {
	s.mu.Lock()
	s.sort()
	s.closed = true
	drop := s.excess()
	s.mu.Unlock()
	freeAll(drop)
}

// sort lets no block be used again before its copy was made, which would overwrite the next. After close
// there are no words to look at.
func (s *staging) sort() {
	s.late = slices.DeleteFunc(s.late, func(b *Block) bool {
		if b.copied != nil && (s.closed || !b.place.done(b.copied)) {
			return false
		}
		b.copied = nil
		s.warm = append(s.warm, b)
		return true
	})
}

// excess takes out what is not kept, the oldest first. To free it takes calls that may wait for a GPU:
// not with the lock.
func (s *staging) excess() []*Block {
	var total int64
	for _, b := range s.warm {
		total += b.Size
	}
	n := 0
	for ; n < len(s.warm) && (s.closed || total > warmBytes || len(s.warm)-n > warmBlocks); n++ {
		total -= s.warm[n].Size
	}
	drop := slices.Clone(s.warm[:n])
	s.warm = slices.Delete(s.warm, 0, n)
	return drop
}

func freeAll(blocks []*Block) {
	for _, b := range blocks {
		if !b.place.left() {
			_ = b.place.in(b.free) // or it went with its context
		} else if b.file != nil {
			b.file.Close() //nolint:errcheck // nothing was written; and its address may be another's now
		}
	}
}
