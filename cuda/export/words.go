package export

import (
	"errors"
	"os"

	"github.com/ndbridge/ndbridge/core"
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
	used    [wordsOnPage]bool
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

// Size is the number of bytes of the page.
func (p *Page) Size() int64 { return pageSize }

// Open makes a descriptor, which the caller owns: for reading, and for writing if writable.
func (p *Page) Open(writable bool) (*os.File, error) {
	if writable {
		return shm.ReadWrite(p.file)
	}
	return shm.ReadOnly(p.file)
}

// Word is a fence that a stream of this process reaches: see [core.CUDAWord].
type Word struct {
	Page   *Page
	Offset int64
	Value  uint32

	place  *place
	stream driver.Stream // that writes it
}

// Core gives the fence as it crosses, once the page is a segment.
func (w *Word) Core(page core.SegmentID) core.CUDAWord {
	return core.CUDAWord{Page: page, Size: pageSize, Offset: w.Offset, Value: w.Value}
}

// Release says that nobody outside waits for the word any more. It is called exactly once.
func (w *Word) Release() {
	w.place.mu.Lock()
	defer w.place.mu.Unlock()
	if !w.place.closed { // else its page is not there any more
		w.place.freeWord(w)
	}
}

func (w *Word) addr() uintptr { return w.Page.mapping.Addr() + uintptr(w.Offset) }

// reached says whether the word was written.
func (w *Word) reached() bool { return int32(loadWord(w.addr())-w.Value) >= 0 }

// fail ends the waiting for a word that no stream will write.
func (w *Word) fail(code driver.Code) {
	storeWord(w.addr()+errorOffset, uint32(code))
	storeWord(w.addr(), w.Value)
}

// newWord takes a word for the next write of a queue. The context is current, and p locked.
func (p *place) newWord(q *Queue) (*Word, error) {
	p.reapWords()
	for _, page := range p.pages {
		for i, used := range page.used {
			if !used {
				return p.takeWord(q, page, i), nil
			}
		}
	}
	page, err := newPage()
	if err != nil {
		return nil, err
	}
	p.pages = append(p.pages, page)
	return p.takeWord(q, page, 0), nil
}

// takeWord gives a word its next value: values of a word only grow, so that a late look at an earlier
// fence finds it reached.
func (p *place) takeWord(q *Queue, page *Page, i int) *Word {
	page.used[i] = true
	w := &Word{Page: page, Offset: int64(i) * wordStride, place: p, stream: q.stream}
	w.Value = loadWord(w.addr()) + 1
	storeWord(w.addr()+errorOffset, 0)
	return w
}

// freeWord lets the word be used again, but not before its stream has written it: a late write of this
// value would undo a later one.
func (p *place) freeWord(w *Word) {
	if !w.reached() {
		p.freed = append(p.freed, w)
		return
	}
	w.Page.used[w.Offset/wordStride] = false
}

// reapWords looks after words that were freed before they were reached.
func (p *place) reapWords() {
	late := p.freed
	p.freed = nil
	for _, w := range late {
		p.freeWord(w)
	}
}
