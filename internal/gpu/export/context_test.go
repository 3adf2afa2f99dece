//go:build cuda

package export_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// TestContextComesAgain: a program resets its device while work is under way whose end a host waits for, a
// copy among it. The next context may have the handle of the first. The fence is reached nonetheless, and
// arrays of the next context are ordered and copied as ever.
func TestContextComesAgain(t *testing.T) { //nolint:paralleltest // nobody else may keep the primary context
	p := newProgram(t)
	p.work(p.slow, 300e6)
	q := p.queue()
	check(t, q.AfterStream(&p.Exporter, uintptr(p.slow)))
	word, ok, err := q.Fence()
	if err != nil || !ok || word == nil {
		t.Fatal(word, ok, err)
	}
	const size = 2 << 20
	block, err := p.Allocate(q, size)
	check(t, err)
	block.Copied(word)
	p.Free(block)
	q.Close()
	page, err := word.Page.Open(false)
	check(t, err)
	defer page.Close()
	check(t, driver.PrimaryCtxRelease(0))
	p.enter()
	next := p.queue()
	defer next.Close()
	later, err := p.Allocate(next, size)
	check(t, err)
	defer p.Free(later)
	var data [4]byte
	for deadline := time.Now().Add(10 * time.Second); binary.NativeEndian.Uint32(data[:]) != word.Value; time.Sleep(time.Millisecond) {
		if _, err := page.ReadAt(data[:], word.Offset); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("who waits for the work would wait for ever")
		}
	}
	p.work(p.slow, 1e6)
	check(t, next.AfterStream(&p.Exporter, uintptr(p.slow)))
	check(t, next.Wait(t.Context()))
}
