package export

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Memory is an export: GPU memory as other processes reach it.
type Memory struct {
	// Handle lacks the IDs of its segments. They are those of the Parts, in the order of the handle.
	Handle contract.Handle
	Parts  []Part
	Base   uintptr // the address that a layout's offset counts from
}

// Part is what one segment of a [Memory] stands for.
type Part struct {
	Key   any // comparable, and unique for all time
	Size  int64
	open  func() (*os.File, error)
	close func() error // nil: there is nothing to close
}

// Open returns a new descriptor, which the caller owns. The error wraps [core.ErrUnsupported] if the
// memory has only a handle.
func (p Part) Open() (*os.File, error) {
	if p.open == nil {
		return nil, fmt.Errorf("%w: the memory has a handle, and no descriptor", core.ErrUnsupported)
	}
	return p.open()
}

// Close closes what the part holds. Descriptors from Open stay valid.
func (p Part) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// Close closes all parts.
func (e Memory) Close() error {
	var errs []error
	for _, p := range e.Parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// bufferKey is the key of an allocation.
type bufferKey struct{ id uint64 }

// Export exports the memory by the pointer's route. The error wraps [core.ErrNotShared] if the driver
// refuses: the memory can only be copied. The caller closes the result.
func (x *Exporter) Export(p gpu.Pointer) (Memory, error) {
	var e Memory
	at, err := x.stateOfPointer(p)
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

// stateOfPointer finds the state in whose context the pointer's memory is exported.
func (x *Exporter) stateOfPointer(p gpu.Pointer) (*contextState, error) {
	ctx := driver.Context(p.Context())
	if ctx == 0 {
		var err error
		if ctx, err = x.primaryOf(p.Device.Index); err != nil {
			return nil, err
		}
	}
	return x.stateOf(ctx, p.Device.Index)
}

func exportIPC(p gpu.Pointer) (Memory, error) {
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

// exportVMM opens descriptors of allocations that were never exported, to prove that it works. For the
// others it waits until a host asks: a descriptor costs half a millisecond, and the host may still have
// the memory mapped.
func (x *Exporter) exportVMM(p gpu.Pointer) (e Memory, err error) {
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

// openChunk exports an allocation that a lease keeps. It fails if the program has freed the allocation
// anyway.
func (x *Exporter) openChunk(p gpu.Pointer, c gpu.Chunk) (f *os.File, err error) {
	at, err := x.stateOfPointer(p)
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

// maxProven bounds how many allocations are remembered as exportable.
const maxProven = 1024

// provenIDs are the allocations that were exported before.
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
