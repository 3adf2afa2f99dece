package export

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// Memory is memory of a GPU as other processes reach it.
type Memory struct {
	// Handle lacks the IDs of its segments, which are those of the Parts, in the order in which the
	// handle has them.
	Handle contract.Handle
	Parts  []Part
	Base   uintptr // the address that a layout's offset counts from
}

// Part is what a segment of a [Memory] stands for.
type Part struct {
	Key   any // never stands for anything else; comparable
	Size  int64
	open  func() (*os.File, error)
	close func() error // nil: there is nothing to give up
}

// Open gives a new descriptor, which the caller owns. It wraps [core.ErrUnsupported] for memory that is
// reached by its handle alone.
func (p Part) Open() (*os.File, error) {
	if p.open == nil {
		return nil, fmt.Errorf("%w: the memory has a handle, and no descriptor", core.ErrUnsupported)
	}
	return p.open()
}

// Close gives up what the part holds. Descriptors that Open gave stay good.
func (p Part) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// Close gives all parts up.
func (e Memory) Close() error {
	var errs []error
	for _, p := range e.Parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// bufferKey is the key of an allocation.
type bufferKey struct{ id uint64 }

// Export makes a handle of the memory, by the pointer's route. A handle that the driver refuses is an
// error that wraps [core.ErrNotShared]: the memory can be copied only.
func (x *Exporter) Export(p cuda.Pointer) (Memory, error) {
	var e Memory
	at, err := x.placeOf(p)
	if err != nil {
		return e, err
	}
	err = at.in(func() (err error) {
		switch p.Route {
		case contract.RouteCUDAIPC:
			e, err = exportIPC(p)
		case contract.RouteCUDAVMM:
			e, err = x.exportVMM(p)
		case contract.RouteCUDAPool:
			e, err = x.exportPool(p)
		default:
			err = fmt.Errorf("the driver has no handle for %s memory of this kind", p.Kind)
		}
		return err
	})
	if err != nil {
		return Memory{}, &core.Error{
			Op: "export", Object: fmt.Sprintf("%#x", p.Addr), Kind: core.ErrNotShared,
			Reason: contract.ReasonNotExportable, Err: err,
		}
	}
	return e, nil
}

// placeOf finds the place of a pointer, in whose context handles are made.
func (x *Exporter) placeOf(p cuda.Pointer) (*place, error) {
	ctx := driver.Context(p.Context())
	if ctx == 0 {
		var err error
		if ctx, err = x.primaryOf(p.Device.Index); err != nil {
			return nil, err
		}
	}
	return x.place(ctx, p.Device.Index)
}

func exportIPC(p cuda.Pointer) (Memory, error) {
	mem, err := driver.IPCGetMemHandle(p.Base)
	if err != nil {
		return Memory{}, err
	}
	return Memory{
		Handle: contract.CUDAIPC{Size: p.Size, GPU: p.GPU, Mem: mem},
		Parts:  []Part{{Key: bufferKey{p.BufferID}, Size: p.Size}},
		Base:   p.Base,
	}, nil
}

// exportVMM makes the descriptors of allocations that were never exported, to see that it works. For
// others it waits until somebody asks: it takes half a millisecond, and the other process may have the
// memory mapped still.
func (x *Exporter) exportVMM(p cuda.Pointer) (e Memory, err error) {
	h := contract.CUDAVMM{GPU: p.GPU}
	for _, c := range p.Chunks {
		part := Part{Key: bufferKey{c.BufferID}, Size: c.Size}
		part.open = func() (*os.File, error) { return x.openChunk(p, c) }
		if !x.proven.has(c.BufferID) {
			f, err := exportChunk(c.Base)
			if err != nil {
				return Memory{}, errors.Join(err, e.Close())
			}
			part.open, part.close = func() (*os.File, error) { return duplicate(f) }, f.Close
			x.proven.add(c.BufferID)
		}
		h.Chunks = append(h.Chunks, contract.CUDAChunk{Size: c.Size})
		e.Parts = append(e.Parts, part)
	}
	e.Handle, e.Base = h, p.Base
	return e, nil
}

// openChunk exports an allocation that a lease keeps, unless the program has freed it nonetheless.
func (x *Exporter) openChunk(p cuda.Pointer, c cuda.Chunk) (f *os.File, err error) {
	at, err := x.placeOf(p)
	if err != nil {
		return nil, err
	}
	err = at.in(func() error {
		a, err := driver.PointerAttributes(c.Base)
		if err != nil {
			return err
		}
		if a.BufferID != c.BufferID {
			return &core.Error{
				Op: "export", Object: fmt.Sprintf("%#x", c.Base), Kind: core.ErrPointer,
				Err: errors.New("the memory was freed while it was leased"),
			}
		}
		f, err = exportChunk(c.Base)
		return err
	})
	return f, err
}

func exportChunk(base uintptr) (*os.File, error) {
	h, err := driver.MemRetainAllocationHandle(base)
	if err != nil {
		return nil, err
	}
	fd, err := driver.MemExport(h)
	err = errors.Join(err, driver.MemRelease(h))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "cuda-allocation"), nil
}

// maxProven bounds how many allocations are known to be exportable.
const maxProven = 1024

// provenIDs are the allocations that were exported once.
type provenIDs struct {
	mu    sync.Mutex
	ids   map[uint64]bool
	order []uint64
}

func (s *provenIDs) has(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

func (s *provenIDs) add(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = make(map[uint64]bool)
	}
	s.ids[id] = true
	if s.order = append(s.order, id); len(s.order) > maxProven {
		delete(s.ids, s.order[0])
		s.order = s.order[1:]
	}
}
