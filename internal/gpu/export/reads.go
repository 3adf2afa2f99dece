package export

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// AfterReads makes a stream of the program wait until the host has done what it has begun to read of memory in p's
// context. The stream is a CUstream, or 1 for the legacy default stream of that context. The error wraps core.ErrDevice
// if the stream is one of another context, core.ErrUnsupported if the device cannot wait for words, and
// core.ErrUnavailable if the stream is being captured.
func (x *Exporter) AfterReads(p gpu.Pointer, stream uintptr) error {
	at, err := x.stateOfPointer(p)
	if err != nil {
		return err
	}
	s := driver.Stream(stream)
	err = at.in(func() error {
		capturing, err := driver.StreamCapturing(s)
		if err == nil && capturing {
			err = &core.Error{
				Op: "wait", Kind: core.ErrUnavailable, Err: errors.New("the stream is being captured into a graph"),
				Remedy: "call wait before the capture begins",
			}
		}
		if err != nil {
			return err
		}
		if s != driver.LegacyStream && s != driver.ThreadStream {
			ctx, err := driver.StreamCtx(s)
			if err != nil {
				return err
			}
			if ctx != at.ctx {
				return &core.Error{
					Op: "wait", Kind: core.ErrDevice, Err: errors.New("the stream is one of another context than the memory's"),
					Remedy: "pass a stream of the array's own context",
				}
			}
		}
		return at.awaitReads(s)
	})
	if err != nil {
		return driver.Explain("wait", "", err)
	}
	return nil
}

// awaitReads is called in the context.
func (c *contextState) awaitReads(s driver.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, page := range c.pages {
		for offset := int64(0); offset < pageSize; offset += contract.CUDAWordStride {
			begun := loadWord(page.addr(offset + contract.CUDAReadBegun))
			if begun == loadWord(page.addr(offset+contract.CUDAReadDone)) {
				continue
			}
			if c.noWords {
				return &core.Error{Op: "wait", Kind: core.ErrUnsupported, Err: errors.New("the GPU or its driver cannot wait for words in memory")}
			}
			if err := driver.StreamWaitValue32(s, page.device+uintptr(offset+contract.CUDAReadDone), begun); err != nil {
				return err
			}
		}
	}
	return nil
}

// endReads lets the program's streams go on, when no host reads any more.
func (p *Page) endReads() {
	for offset := int64(0); offset < pageSize; offset += contract.CUDAWordStride {
		storeWord(p.addr(offset+contract.CUDAReadDone), loadWord(p.addr(offset+contract.CUDAReadBegun)))
	}
}
