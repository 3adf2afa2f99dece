//go:build cuda

package export

import (
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// UseUp lets the queue's word have taken all values but one.
func (q *Queue) UseUp() {
	q.slot.last = lastValue - 1
	storeWord(q.slot.addr(), q.slot.last)
}

// Gate holds streams up.
type Gate struct{ page *Page }

// NewGate makes a gate, which is shut, in the current context.
func NewGate() (Gate, error) {
	page, err := newPage()
	return Gate{page}, err
}

// Hold keeps the stream from its later work until the gate is opened.
func (g Gate) Hold(s driver.Stream) error { return driver.StreamWaitValue32(s, g.page.device, 1) }

// Open lets the streams go on.
func (g Gate) Open() { storeWord(g.page.addr(0), 1) }

// Close is called in the gate's context when no stream is held up.
func (g Gate) Close() error { return g.page.close() }

// SetRead writes the words of a count of reads on the first page: begun, and done.
func (q *Queue) SetRead(index int, begun, done uint32) {
	at := q.state.pages[0].addr(int64(index) * contract.CUDAWordStride)
	storeWord(at+contract.CUDAReadBegun, begun)
	storeWord(at+contract.CUDAReadDone, done)
}
