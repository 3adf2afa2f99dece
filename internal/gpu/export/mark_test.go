//go:build cuda

package export_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

// TestMarks proves that a mark is one of its stream and its moment: a queue that waits for it waits for
// no work of other streams, and for no later work; and that a mark of the context is one of all streams.
func TestMarks(t *testing.T) { //nolint:paralleltest // others free memory, which waits for all streams
	const soon, late = 50e6, 2e9 // nanoseconds that work takes
	p := newProgram(t)
	p.work(p.fast, soon)
	p.work(p.slow, late)
	one, err := p.Mark(p.pointer, uintptr(p.fast))
	check(t, err)
	every, err := p.MarkAll(p.pointer)
	check(t, err)
	p.work(p.fast, late)
	for _, c := range []struct {
		name string
		mark *export.Mark
		all  bool
	}{{"one stream", one, false}, {"the context", every, true}} {
		q := p.queue()
		check(t, q.AfterMark(c.mark))
		word, ok, err := q.Fence()
		if err != nil || !ok || word == nil {
			t.Fatalf("%s: a fence of %v, %v (%v)", c.name, word, ok, err)
		}
		check(t, q.Wait(t.Context()))
		if p.idle(p.slow) != c.all {
			t.Errorf("%s: the other stream is idle: %v", c.name, !c.all)
		}
		if !c.all && p.idle(p.fast) {
			t.Errorf("%s: later work was waited for", c.name)
		}
		q.Close()
		c.mark.Close()
	}
}
