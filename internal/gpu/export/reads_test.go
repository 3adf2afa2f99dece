//go:build cuda

package export_test

import (
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// TestReads has a stream wait for the reads of a host that have begun, on each of its counts, and for no other; the end of
// the session ends the wait.
func TestReads(t *testing.T) { //nolint:paralleltest // others free memory, which waits for all streams
	p := newProgram(t)
	q := p.queue()
	check(t, q.AfterStream(&p.Exporter, uintptr(p.fast)))
	fence(t, q) // so that there is a page
	check(t, q.Wait(t.Context()))
	awaits := func(what string, want bool) {
		t.Helper()
		check(t, p.AfterReads(p.pointer, uintptr(p.slow)))
		if want {
			<-time.After(20 * time.Millisecond)
		} else {
			p.do(func() error { return driver.StreamSynchronize(p.slow) })
		}
		if p.idle(p.slow) == want {
			t.Errorf("%s: the stream waits: %v", what, !want)
		}
	}
	awaits("no read", false)
	q.SetRead(0, 3, 3)
	q.SetRead(5, 8, 7)
	awaits("one read", true)
	q.SetRead(5, 9, 8) // the host has begun another one meanwhile
	p.do(func() error { return driver.StreamSynchronize(p.slow) })
	q.SetRead(5, 9, 9)
	q.SetRead(63, 1<<31, 1<<31-1) // it wraps around
	awaits("a read on the last count", true)
	q.Close()
	check(t, p.Close())
	p.do(func() error { return driver.StreamSynchronize(p.slow) })
}
