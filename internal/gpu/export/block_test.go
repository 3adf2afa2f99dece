//go:build cuda

package export_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

// TestBlocksGivenBackEarly: memory for copies that is given back before the copy was made is not given
// away until it was, and is then.
func TestBlocksGivenBackEarly(t *testing.T) { //nolint:paralleltest // others load code, which waits for all streams
	const size = 2 << 20
	p := newProgram(t)
	gate := p.gate() // not work that takes a while: this test may take longer
	t.Cleanup(func() {
		gate.Open()
		p.do(gate.Close)
	})
	early := make(map[uintptr]bool)
	var queues []*export.Queue
	for range 3 {
		q := p.queue()
		block, err := p.Allocate(q, size)
		check(t, err)
		if early[block.Addr] {
			t.Error("a block was given away before its copy was made")
		}
		early[block.Addr] = true
		check(t, q.AfterStream(&p.Exporter, uintptr(p.slow)))
		word, ok, err := q.Fence()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		block.Copied(word)
		p.Free(block)
		queues = append(queues, q)
		defer q.Close()
	}
	gate.Open()
	for _, q := range queues {
		check(t, q.Wait(t.Context()))
	}
	for _, q := range queues {
		block, err := p.Allocate(q, size)
		check(t, err)
		if !early[block.Addr] {
			t.Error("a block was not used again")
		}
		delete(early, block.Addr)
		defer p.Free(block)
	}
}
