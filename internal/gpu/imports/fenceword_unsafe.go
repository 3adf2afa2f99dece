package imports

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/reuse"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// page is host memory with fence words.
type page struct {
	*shm.Mapping
	id     contract.SegmentID
	device uintptr // its address for GPUs, or 0 if they do not reach it
	undo   undo
	entry  *reuse.Entry[contract.SegmentID, *page]

	readers readers
}

// End implements reuse.Resource. The call that unregisters memory may wait for all streams.
func (p *page) End() error { return gpu.Streams.Make(p.undo.run) }

// fenceWord is a number in a page that the other process's GPU or CPU writes when its work is done.
type fenceWord struct {
	page   *page
	offset int64
	value  uint32
}

// word opens the fence word that a standing lease's fence names. The caller closes it once. The error wraps
// core.ErrProtocol or core.ErrPointer if a claim of the producer is false.
func (c *cache) word(ctx context.Context, g *gpu.Primary, w contract.CUDAWord) (*fenceWord, error) {
	if !wellPlaced(w, w.Size) {
		return nil, refused(core.ErrProtocol, "a word at %d of %d bytes", w.Offset, w.Size)
	}
	p, err := c.pages.Use(ctx, w.Page, w.Size, func(e *reuse.Entry[contract.SegmentID, *page]) (*page, error) {
		p := &page{id: w.Page, entry: e}
		if err := c.openPage(ctx, g, w, p); err != nil {
			_ = p.End() // of what succeeded
			return nil, err
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return &fenceWord{page: p, offset: w.Offset, value: w.Value}, nil
}

// wellPlaced reports whether a fence word lies in a page of some size, apart from the words of reads.
func wellPlaced(w contract.CUDAWord, size int64) bool {
	return w.Offset >= 0 && w.Offset%contract.CUDAWordStride == 0 && w.Offset <= size-contract.CUDAWordStride
}

// beside returns the word of another fence if it lies in the same page. It is valid as long as w is, and is
// not closed.
func (w *fenceWord) beside(f contract.CUDAWord) (*fenceWord, bool) {
	if f.Page != w.page.id || !wellPlaced(f, w.page.Size()) {
		return nil, false
	}
	return &fenceWord{page: w.page, offset: f.Offset, value: f.Value}, true
}

func (c *cache) openPage(ctx context.Context, g *gpu.Primary, w contract.CUDAWord, p *page) error {
	file, err := c.producer.Descriptor(ctx, w.Page, true)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	sealed, err := shm.Sealed(file)
	if err != nil {
		return refused(core.ErrProtocol, "segment %d: %w", w.Page, err)
	}
	if !sealed {
		return refused(core.ErrProtocol, "segment %d holds words, and could shrink", w.Page)
	}
	if p.Mapping, err = shm.Map(file, w.Size, true); err != nil {
		return err
	}
	p.undo.add(p.Close)
	return g.Do(func() error {
		err := driver.HostRegister(p.Addr(), p.Size(), driver.RegisterPortable|driver.RegisterMapped)
		if errors.Is(err, core.ErrUnsupported) {
			return nil // the CPU waits instead
		}
		if err != nil {
			return foreign(err, "segment %d", w.Page)
		}
		p.undo.add(func() error {
			return g.Do(func() error { return driver.HostUnregister(p.Addr()) })
		})
		p.device, err = driver.HostGetDevicePointer(p.Addr())
		return err
	})
}

// reached reports whether the work is done.
func (w *fenceWord) reached() bool { return int32(w.memory().Load()-w.value) >= 0 } //nolint:gosec // it wraps around

// failure returns the driver's error that kept the other process's GPU from the work, or 0. That process's
// CPU writes it behind the word before it writes the word.
func (w *fenceWord) failure() uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&w.page.Bytes()[w.offset+4])).Load()
}

// raise writes the word in place of a process that is gone.
func (w *fenceWord) raise() {
	for {
		old := w.memory().Load()
		if int32(old-w.value) >= 0 || w.memory().CompareAndSwap(old, w.value) { //nolint:gosec // it wraps around
			return
		}
	}
}

// onGPU reports whether streams can wait for the word.
func (w *fenceWord) onGPU() bool { return w.page.device != 0 }

// wait makes the stream's later work wait for the word. The stream's context is current.
func (w *fenceWord) wait(s driver.Stream) error {
	return driver.StreamWaitValue32(s, w.page.device+uintptr(w.offset), w.value)
}

// close ends one use.
func (w *fenceWord) close() error { return w.page.entry.Release() }

func (w *fenceWord) memory() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&w.page.Bytes()[w.offset]))
}
