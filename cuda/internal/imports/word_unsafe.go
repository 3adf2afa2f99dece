package imports

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
	"github.com/ndbridge/ndbridge/internal/reuse"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// page is host memory with words.
type page struct {
	*shm.Mapping
	id     contract.SegmentID
	device uintptr // its address for GPUs, or 0 if they do not reach it
	undo   undo
	entry  *reuse.Entry[contract.SegmentID, *page]
}

// End implements reuse.Resource. To take registered memory back may wait for all streams.
func (p *page) End() error { return primary.Streams.Make(p.undo.run) }

// Word is a fence: a number that the other process's GPU or CPU writes when its work is done.
type Word struct {
	page   *page
	offset int64
	value  uint32
}

// Word gives the word that a standing lease's fence names. Who gets it calls Close once. An error that
// wraps core.ErrProtocol or core.ErrPointer says that the producer lied.
func (c *Cache) Word(ctx context.Context, gpu *primary.GPU, w contract.CUDAWord) (*Word, error) {
	if w.Offset < 0 || w.Offset%4 != 0 || w.Size < 4 || w.Offset > w.Size-4 {
		return nil, refused(core.ErrProtocol, "a word at %d of %d bytes", w.Offset, w.Size)
	}
	p, err := c.pages.Use(ctx, w.Page, w.Size, func(e *reuse.Entry[contract.SegmentID, *page]) (*page, error) {
		p := &page{id: w.Page, entry: e}
		if err := c.openPage(ctx, gpu, w, p); err != nil {
			_ = p.End() // of what succeeded
			return nil, err
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return &Word{page: p, offset: w.Offset, value: w.Value}, nil
}

// Beside gives the word of another fence if that lies in the same page. It is of use as long as w is, and not
// closed.
func (w *Word) Beside(f contract.CUDAWord) (*Word, bool) {
	if f.Page != w.page.id || f.Offset < 0 || f.Offset%4 != 0 || f.Offset > w.page.Size()-4 {
		return nil, false
	}
	return &Word{page: w.page, offset: f.Offset, value: f.Value}, true
}

func (c *Cache) openPage(ctx context.Context, gpu *primary.GPU, w contract.CUDAWord, p *page) error {
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
	return gpu.Do(func() error {
		err := driver.HostRegister(p.Addr(), p.Size(), driver.RegisterPortable|driver.RegisterMapped)
		if errors.Is(err, core.ErrUnsupported) {
			return nil // the CPU waits instead
		}
		if err != nil {
			return foreign(err, "segment %d", w.Page)
		}
		p.undo.add(func() error {
			return gpu.Do(func() error { return driver.HostUnregister(p.Addr()) })
		})
		p.device, err = driver.HostGetDevicePointer(p.Addr())
		return err
	})
}

// Reached says whether the work is done.
func (w *Word) Reached() bool { return int32(w.word().Load()-w.value) >= 0 } //nolint:gosec // it wraps around

// Failure is the driver's error that kept the other process's GPU from the work, if the word was reached
// nevertheless: that process's CPU has written it. It stands behind the word.
func (w *Word) Failure() uint32 {
	if w.offset > w.page.Size()-8 {
		return 0
	}
	return (*atomic.Uint32)(unsafe.Pointer(&w.page.Bytes()[w.offset+4])).Load()
}

// Raise makes it reached, in the place of a process that cannot do that any more.
func (w *Word) Raise() {
	for {
		old := w.word().Load()
		if int32(old-w.value) >= 0 || w.word().CompareAndSwap(old, w.value) { //nolint:gosec // it wraps around
			return
		}
	}
}

// GPU reports whether streams can wait for the word.
func (w *Word) GPU() bool { return w.page.device != 0 }

// Wait lets the stream's later work wait for the word. The stream's context is current.
func (w *Word) Wait(s driver.Stream) error {
	return driver.StreamWaitValue32(s, w.page.device+uintptr(w.offset), w.value)
}

// Close ends one use.
func (w *Word) Close() error { return w.page.entry.Release() }

func (w *Word) word() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&w.page.Bytes()[w.offset]))
}
