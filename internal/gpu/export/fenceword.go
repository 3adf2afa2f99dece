package export

import (
	"errors"
	"math"
	"os"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Fence words lie apart, so that the words of two streams share no cache line. What lies behind each is its error,
// and a count of reads: see [contract.CUDAWord]. If the context breaks before its stream has written the word, the CPU stores
// there the driver's error code, and then the word, so that nobody waits for a stream that will never
// write.
const (
	wordStride  = contract.CUDAWordStride
	wordsOnPage = 64
	pageSize    = wordStride * wordsOnPage
	errorOffset = 4
)

// Page is the memory of fence words: a sealed memfd that one context of this process can write to. A
// process that maps it can write to it, too.
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
		return nil, errors.Join(err, shm.Close(f))
	}
	err = driver.HostRegister(p.mapping.Addr(), pageSize, driver.RegisterPortable|driver.RegisterMapped)
	if err == nil {
		if p.device, err = driver.HostGetDevicePointer(p.mapping.Addr()); err == nil {
			return p, nil
		}
		err = errors.Join(err, driver.HostUnregister(p.mapping.Addr()))
	}
	return nil, errors.Join(err, p.mapping.Close(), shm.Close(f))
}

// close is called when no stream writes to the page, with the page's context current unless that has
// ended.
func (p *Page) close() error {
	_ = driver.HostUnregister(p.mapping.Addr()) // or it went with its context
	return errors.Join(p.mapping.Close(), shm.Close(p.file))
}

func (p *Page) addr(offset int64) uintptr { return p.mapping.Addr() + uintptr(offset) }

// Size returns the number of bytes of the page.
func (p *Page) Size() int64 { return pageSize }

// Open makes a descriptor, which the caller owns: for reading, and also for writing if writable is set.
func (p *Page) Open(writable bool) (*os.File, error) {
	if writable {
		return shm.ReadWrite(p.file)
	}
	return shm.ReadOnly(p.file)
}

// FenceWord is a fence that a stream of this process reaches by writing a number: see [contract.CUDAWord].
// It needs no Close.
type FenceWord struct {
	Page   *Page
	Offset int64
	Value  uint32
}

// Core returns the fence as it crosses to another process, given the segment of its page.
func (w *FenceWord) Core(page contract.SegmentID) contract.CUDAWord {
	return contract.CUDAWord{Page: page, Size: pageSize, Offset: w.Offset, Value: w.Value}
}

// Reached reports whether the stream has written the word.
func (w *FenceWord) Reached() bool { return int32(loadWord(w.Page.addr(w.Offset))-w.Value) >= 0 }

// slot is the memory of a fence word. One queue after the other uses it. Its values only grow, and do
// not wrap around, so an earlier fence stays reached however late it is checked.
type slot struct {
	page   *Page
	offset int64
	last   uint32        // the value that was given last
	stream driver.Stream // that writes it
}

// lastValue is the last value that a slot takes. No program makes so many views that used-up slots
// would matter.
const lastValue = math.MaxInt32

func (s *slot) addr() uintptr { return s.page.addr(s.offset) }

// reached reports whether its stream has written the last value.
func (s *slot) reached() bool { return loadWord(s.addr()) >= s.last }

// outstanding returns how many values its stream has yet to write.
func (s *slot) outstanding() uint32 { return s.last - min(s.last, loadWord(s.addr())) }

// fail writes the slot in place of a stream that will not.
func (s *slot) fail(code driver.Code) {
	storeWord(s.addr()+errorOffset, uint32(code))
	storeWord(s.addr(), s.last)
}

// newWord returns the fence word of the next write of a queue. The context is current, and the caller
// holds mu.
func (c *contextState) newWord(q *Queue) (*FenceWord, error) {
	if q.slot == nil || q.slot.last == lastValue {
		s, err := c.newSlot()
		if err != nil {
			return nil, err
		}
		s.stream = q.stream
		q.slot = s
	}
	q.slot.last++
	return &FenceWord{Page: q.slot.page, Offset: q.slot.offset, Value: q.slot.last}, nil
}

// newSlot returns a slot that no queue has.
func (c *contextState) newSlot() (*slot, error) {
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s, nil
	}
	at := len(c.slots) % wordsOnPage
	if at == 0 {
		page, err := newPage()
		if err != nil {
			return nil, err
		}
		c.pages = append(c.pages, page)
	}
	s := &slot{page: c.pages[len(c.pages)-1], offset: int64(at) * wordStride}
	c.slots = append(c.slots, s)
	return s, nil
}
