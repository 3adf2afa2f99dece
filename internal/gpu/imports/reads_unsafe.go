package imports

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// readers are the counts of reads in a page, by which streams of the program wait for the host. Each is that of one
// reader, who ends its reads in the order in which they began, until another one takes a count whose reads are all done.
type readers struct {
	mu     sync.Mutex
	owners map[int]any // by the index of the count
}

// read is one read of a program's memory that has begun.
type read struct {
	page  *page
	index int
	count uint32
}

// begin begins a read of memory whose fences lie in the page. The error wraps core.ErrUnavailable if all counts are those
// of readers that are at it.
func (p *page) begin(reader any) (read, error) {
	r := &p.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners == nil {
		r.owners = make(map[int]any)
	}
	free, counts := -1, int(p.Size()/contract.CUDAWordStride)
	for i := range counts {
		if r.owners[i] == reader {
			free = i
			break
		}
		if free < 0 && p.count(i, contract.CUDAReadBegun).Load() == p.count(i, contract.CUDAReadDone).Load() {
			free = i
		}
	}
	if free < 0 {
		return read{}, &core.Error{
			Kind: core.ErrUnavailable, Err: errors.New("too many streams and copies read memory of one program at once"),
			Remedy: "synchronize some of the streams first",
		}
	}
	r.owners[free] = reader
	return read{p, free, p.count(free, contract.CUDAReadBegun).Add(1)}, nil
}

// count is one word of the index-th count.
func (p *page) count(index int, word int64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&p.Bytes()[int64(index)*contract.CUDAWordStride+word]))
}

// endBy has a stream end the read when it has done what it was given until now. The stream's context is current.
func (r read) endBy(s driver.Stream) error {
	at := r.page.device + uintptr(r.index)*contract.CUDAWordStride + contract.CUDAReadDone
	err := driver.StreamWriteValue32(s, at, r.count)
	if err != nil { // the program must not wait for ever
		r.end()
	}
	return err
}

// end ends the read at once.
func (r read) end() { r.page.count(r.index, contract.CUDAReadDone).Store(r.count) }

// endOf ends all reads of a reader whose stream does it no more.
func (p *page) endOf(reader any) {
	r := &p.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, owner := range r.owners {
		if owner == reader {
			p.count(i, contract.CUDAReadDone).Store(p.count(i, contract.CUDAReadBegun).Load())
		}
	}
}
