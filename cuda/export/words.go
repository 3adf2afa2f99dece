package export

import (
	"errors"
	"math"
	"os"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Words lie apart, so that those of two streams share no line of a cache. The four bytes behind a word
// are its error: if the context breaks before its stream has written the word, the CPU stores there the
// driver's error code, and after it the word, so that nobody waits for a stream that will never write.
const (
	wordStride  = 64
	wordsOnPage = 64
	pageSize    = wordStride * wordsOnPage
	errorOffset = 4
)

// Page is the memory of words: a sealed memfd, which one context of this process can write to. Any
// process that maps it may write to it as well.
type Page struct {
	file    *os.File
	mapping *shm.Mapping
	device  uintptr // its address in the context
}

// newPage makes a page in the current context.
func newPage() (*Page, error) {
	f, err := shm.Create("ndbridge-words", pageSize)
	if err != nil {
		return nil, err
	}
	p := &Page{file: f}
	if p.mapping, err = shm.Map(f, pageSize, true); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = driver.HostRegister(p.mapping.Addr(), pageSize, driver.RegisterPortable|driver.RegisterMapped)
	if err == nil {
		if p.device, err = driver.HostGetDevicePointer(p.mapping.Addr()); err == nil {
			return p, nil
		}
		err = errors.Join(err, driver.HostUnregister(p.mapping.Addr()))
	}
	return nil, errors.Join(err, p.mapping.Close(), f.Close())
}

// close is called with the page's context current, if that is still there, when no stream writes to it.
func (p *Page) close() error {
	_ = driver.HostUnregister(p.mapping.Addr()) // or it went with its context
	return errors.Join(p.mapping.Close(), p.file.Close())
}

func (p *Page) addr(offset int64) uintptr { return p.mapping.Addr() + uintptr(offset) }

// Size is the number of bytes of the page.
func (p *Page) Size() int64 { return pageSize }

// Open makes a descriptor, which the caller owns: for reading, and for writing if writable.
func (p *Page) Open(writable bool) (*os.File, error) {
	if writable {
		return shm.ReadWrite(p.file)
	}
	return shm.ReadOnly(p.file)
}

// Word is a fence that a stream of this process reaches: see [contract.CUDAWord]. It needs no giving back.
type Word struct {
	Page   *Page
	Offset int64
	Value  uint32
}

// Core gives the fence as it crosses, once the page is a segment.
func (w *Word) Core(page contract.SegmentID) contract.CUDAWord {
	return contract.CUDAWord{Page: page, Size: pageSize, Offset: w.Offset, Value: w.Value}
}

// reached says whether the word was written.
func (w *Word) reached() bool { return int32(loadWord(w.Page.addr(w.Offset))-w.Value) >= 0 }

// slot is a word's place, which one queue after the other has. Its values only grow, and do not wrap
// around, so that whoever looks at an earlier fence, however late, finds it reached.
type slot struct {
	page   *Page
	offset int64
	last   uint32        // the value that was given last
	stream driver.Stream // that writes it
}

// lastValue is the last that a slot takes. No program has so many views that the slots that are used up
// would matter.
const lastValue = math.MaxInt32

func (s *slot) addr() uintptr { return s.page.addr(s.offset) }

// reached says whether all that was given was written.
func (s *slot) reached() bool { return loadWord(s.addr()) >= s.last }

// fail ends the waiting for a slot that no stream will write.
func (s *slot) fail(code driver.Code) {
	storeWord(s.addr()+errorOffset, uint32(code))
	storeWord(s.addr(), s.last)
}

// newWord gives the word of the next write of a queue. The context is current, and p locked.
func (p *place) newWord(q *Queue) (*Word, error) {
	if q.slot == nil || q.slot.last == lastValue {
		s, err := p.newSlot()
		if err != nil {
			return nil, err
		}
		s.stream = q.stream
		q.slot = s
	}
	q.slot.last++
	return &Word{Page: q.slot.page, Offset: q.slot.offset, Value: q.slot.last}, nil
}

// newSlot gives a slot that no queue has.
func (p *place) newSlot() (*slot, error) {
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s, nil
	}
	at := len(p.slots) % wordsOnPage
	if at == 0 {
		page, err := newPage()
		if err != nil {
			return nil, err
		}
		p.pages = append(p.pages, page)
	}
	s := &slot{page: p.pages[len(p.pages)-1], offset: int64(at) * wordStride}
	p.slots = append(p.slots, s)
	return s, nil
}
