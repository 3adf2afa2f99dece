package export

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Bounds of the GPU memory that is kept for the next copy. The program cannot use that memory
// meanwhile.
const (
	warmBytes  = 64 << 20
	warmBlocks = 16
	minBlock   = 2 << 20 // physical allocations are not smaller
)

// staging is the GPU memory of copies.
type staging struct {
	mu     sync.Mutex
	closed bool
	warm   []*Block // not in use, the oldest first
	late   []*Block // given back before their copy was made
}

// Block is GPU memory of the exporter for the copy of an array that cannot be exported. Other processes
// can open the block.
type Block struct {
	Addr   uintptr
	Size   int64
	export Memory
	state  *contextState
	copied *FenceWord // nil: the copy is there

	// For memory behind a descriptor; otherwise cuMemAlloc allocated the block.
	mapping *gpu.Mapping
	file    *os.File
}

// Allocate returns a block with room for a copy by the queue. The error wraps [core.ErrNotShared] if
// the queue's device cannot export memory, and [core.ErrUnavailable] if the device has no room.
func (x *Exporter) Allocate(q *Queue, size int64) (*Block, error) {
	if b := x.staging.take(q.state, size); b != nil {
		return b, nil
	}
	var b *Block
	err := q.state.in(func() (err error) {
		b, err = allocate(q.state, size)
		return err
	})
	if err == nil {
		return b, nil
	}
	e := &core.Error{Op: "stage", Kind: core.ErrUnavailable, Err: err}
	if d, ok := errors.AsType[*driver.Error](err); ok && d.Code == driver.OutOfMemory {
		e.Err = fmt.Errorf("a copy of %d bytes on %v: %w", size, core.Device{Kind: core.CUDA, Index: q.state.device.Index}, err)
		e.Remedy = "free memory of the GPU, or close views of copies"
	} else {
		e.Kind, e.Reason = core.ErrNotShared, contract.ReasonNotExportable
	}
	return nil, e
}

// allocate is called in the state's context.
func allocate(p *contextState, size int64) (*Block, error) {
	b := &Block{state: p, Size: size}
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

// mapMemory maps physical memory that has a descriptor.
func (b *Block) mapMemory() (err error) {
	if b.mapping, b.file, err = gpu.Allocate(driver.Device(b.state.device.Index), b.Size); err != nil {
		return err
	}
	b.Addr, b.Size = b.mapping.Addr, b.mapping.Size
	b.export = Memory{
		Handle: contract.CUDAVMM{GPU: b.state.device.UUID, Chunks: []contract.CUDAChunk{{Size: b.Size}}},
		Parts:  []Part{{Key: b, Size: b.Size, open: func() (*os.File, error) { return duplicate(b.file) }}},
		Base:   b.Addr,
	}
	return nil
}

// Memory returns the block as other processes reach it. Closing its parts does not free the block.
func (b *Block) Memory() Memory { return b.export }

// Copied sets the fence word that the GPU writes when the copy is complete; nil if it is complete
// already.
func (b *Block) Copied(w *FenceWord) { b.copied = w }

// free is called in the state's context, unless the context is gone.
func (b *Block) free() error {
	if b.mapping == nil {
		return driver.MemFree(b.Addr)
	}
	return errors.Join(b.mapping.Unmap(), b.file.Close())
}

// Free returns the block to the exporter. No other process may still use it.
func (x *Exporter) Free(b *Block) { x.staging.put(b) }

// take finds a block that is large enough, but not much larger.
func (s *staging) take(p *contextState, size int64) (found *Block) {
	s.mu.Lock()
	s.sort()
	for i, b := range slices.Backward(s.warm) {
		if b.state == p && b.Size >= size && b.Size <= max(2*size, minBlock) {
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

// close frees all blocks except those that a stream has yet to copy to; those stay where they are.
func (s *staging) close() {
	s.mu.Lock()
	s.sort()
	s.closed = true
	drop := s.excess()
	s.mu.Unlock()
	freeAll(drop)
}

// sort moves the blocks whose copy is complete to warm: an earlier reuse would overwrite the next copy.
// After close it reads no fence words.
func (s *staging) sort() {
	s.late = slices.DeleteFunc(s.late, func(b *Block) bool {
		if b.copied != nil && (s.closed || !b.state.done(b.copied)) {
			return false
		}
		b.copied = nil
		s.warm = append(s.warm, b)
		return true
	})
}

// excess removes what is not kept, the oldest first. The caller frees it without the lock, since the
// calls may wait for a GPU.
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
		if !b.state.left() {
			_ = b.state.in(b.free) // or it went with its context
		} else if b.file != nil {
			b.file.Close() //nolint:errcheck // nothing was written; and its address may be another's now
		}
	}
}
