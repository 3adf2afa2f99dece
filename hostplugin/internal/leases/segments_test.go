package leases

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// describer lends one sealed file for all segments, and counts.
type describer struct {
	file  *os.File
	fail  error
	block chan struct{} // nil: does not block

	mu    sync.Mutex
	calls int
}

func newDescriber(t *testing.T, size int64) *describer {
	t.Helper()
	f, err := shm.Create("segment", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &describer{file: f}
}

func (d *describer) Descriptor(ctx context.Context, _ contract.SegmentID, _ bool) (*os.File, error) {
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	if d.block != nil {
		select {
		case <-d.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d.fail != nil {
		return nil, d.fail
	}
	return os.OpenFile("/proc/self/fd/"+fdOf(d.file), os.O_RDWR, 0)
}

func fdOf(f *os.File) string {
	raw, err := f.SyscallConn()
	if err != nil {
		panic(err)
	}
	var s string
	if err := raw.Control(func(fd uintptr) { s = itoa(int(fd)) }); err != nil {
		panic(err)
	}
	return s
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func segment(id contract.SegmentID, size int64) contract.Segment {
	return contract.Segment{ID: id, Size: size, Sealed: true}
}

func mapped(t *testing.T, c *Segments, s contract.Segment, writable bool) *segmentMemory {
	t.Helper()
	m, err := c.use(t.Context(), s, writable)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func closed(t *testing.T, closers ...interface{ Close() error }) {
	t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOneMappingForAll(t *testing.T) {
	t.Parallel()
	d := newDescriber(t, 1<<16)
	c := NewSegments(d, false)
	a := mapped(t, c, segment(1, 1<<16), false)
	b := mapped(t, c, segment(1, 4096), false) // a smaller part of it, as an earlier lease would have said
	w := mapped(t, c, segment(1, 1<<16), true)
	other := mapped(t, c, segment(2, 1<<16), false)
	if a != b || a == w || a == other || a.Writable() || !w.Writable() {
		t.Errorf("mappings %p %p %p %p", a, b, w, other)
	}
	w.Bytes()[5] = 7
	if a.Bytes()[5] != 7 {
		t.Error("mappings of one file differ")
	}
	closed(t, a)
	if b.Bytes() == nil {
		t.Error("the mapping went with its first user")
	}
	closed(t, b, w, other)
	if again := mapped(t, c, segment(1, 1<<16), false); again != a || again.Bytes() == nil || d.calls != 3 {
		t.Errorf("mapped anew, with %d descriptors", d.calls)
	} else {
		closed(t, again)
	}
	closed(t, c, c)
	for _, m := range []*segmentMemory{a, w, other} {
		if m.Bytes() != nil {
			t.Error("mapped after Close")
		}
	}
}

// TestSegmentGrows: a lease that says more than what is mapped gets a new mapping; the old one stays
// with its users.
func TestSegmentGrows(t *testing.T) {
	t.Parallel()
	c := NewSegments(newDescriber(t, 1<<16), false)
	small := mapped(t, c, segment(1, 4096), false)
	large := mapped(t, c, segment(1, 1<<16), false)
	if small == large || small.Size() != 4096 || large.Size() != 1<<16 {
		t.Errorf("sizes %d, %d", small.Size(), large.Size())
	}
	if next := mapped(t, c, segment(1, 4096), false); next != large {
		t.Error("the older mapping is in use again")
	} else {
		closed(t, next)
	}
	closed(t, small)
	if small.Bytes() != nil {
		t.Error("what was replaced stays mapped")
	}
	closed(t, large, c)
}

func TestUseOutlivesCache(t *testing.T) {
	t.Parallel()
	c := NewSegments(newDescriber(t, 4096), false)
	m := mapped(t, c, segment(1, 4096), false)
	closed(t, c)
	if m.Bytes() == nil {
		t.Fatal("unmapped in use")
	}
	closed(t, m)
	if m.Bytes() != nil {
		t.Error("mapped after its last use")
	}
}

func TestIdleExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewSegments(newDescriber(t, 4096), false)
		a, b := mapped(t, c, segment(1, 4096), false), mapped(t, c, segment(2, 4096), false)
		closed(t, a)
		time.Sleep(3 * time.Second)
		closed(t, b)
		if a.Bytes() == nil {
			t.Error("expired too early")
		}
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if a.Bytes() != nil || b.Bytes() == nil {
			t.Error("expired: not the first alone")
		}
		if again := mapped(t, c, segment(2, 4096), false); again != b {
			t.Error("not reused")
		}
		time.Sleep(time.Minute)
		if b.Bytes() == nil {
			t.Error("expired in use")
		}
		closed(t, b)
		time.Sleep(idleTime + time.Millisecond)
		synctest.Wait()
		if b.Bytes() != nil {
			t.Error("idle for ever")
		}
		closed(t, c)
	})
}

func TestIdleLimits(t *testing.T) {
	t.Parallel()
	c := NewSegments(newDescriber(t, 2<<30), false) // sparse: no page is touched
	var first, last *segmentMemory
	for id := range contract.SegmentID(idleCount + 1) {
		last = mapped(t, c, segment(id, 4096), false)
		if first == nil {
			first = last
		}
		closed(t, last)
	}
	if first.Bytes() != nil || last.Bytes() == nil {
		t.Error("not the longest idle one has gone")
	}
	large := mapped(t, c, segment(1000, 2<<30), false)
	closed(t, large)
	if large.Bytes() == nil || last.Bytes() != nil {
		t.Error("one large segment stays, but not with others")
	}
	next := mapped(t, c, segment(1001, 4096), false)
	closed(t, next)
	if large.Bytes() != nil || next.Bytes() == nil {
		t.Error("a large segment stays beside others")
	}
	closed(t, c)
}

func TestGuardKeepsNothing(t *testing.T) {
	t.Setenv("NDBRIDGE_GUARD", "1")
	c := NewSegments(newDescriber(t, 4096), false)
	m := mapped(t, c, segment(1, 4096), false)
	closed(t, m)
	if m.Bytes() != nil {
		t.Error("mapped after its last use")
	}
	closed(t, c)
}

// TestConcurrentMaps: those that come together share one attempt; who gives up does not spoil it for
// the others.
func TestConcurrentMaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDescriber(t, 4096)
		d.block = make(chan struct{})
		c := NewSegments(d, false)
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.use(impatient, segment(1, 4096), false); !errors.Is(err, context.Canceled) {
				t.Errorf("the first = %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := c.use(impatient, segment(1, 4096), false); !errors.Is(err, context.Canceled) {
				t.Errorf("the second = %v", err)
			}
		})
		for range 8 {
			wg.Go(func() {
				m, err := c.use(t.Context(), segment(1, 4096), false)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				closed(t, m)
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(d.block)
		wg.Wait()
		if d.calls != 2 {
			t.Errorf("%d descriptors, want one that failed and one for all others", d.calls)
		}
		closed(t, c)
	})
}

// unsealed is a file that can shrink.
func unsealed(t *testing.T, size int64) *os.File {
	t.Helper()
	f, err := os.Create(t.TempDir() + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestErrors(t *testing.T) {
	t.Parallel()
	plain := unsealed(t, 4096)
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	sealed := newDescriber(t, 4096).file
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		d    *describer
		s    contract.Segment
		kind error
		text string
	}{
		"call fails":   {&describer{fail: gone}, segment(1, 4096), gone, "gone"},
		"not sealed":   {&describer{file: plain}, segment(1, 4096), core.ErrProtocol, "could shrink"},
		"device":       {&describer{file: null}, segment(1, 4096), core.ErrProtocol, "could shrink"},
		"plain device": {&describer{file: null}, contract.Segment{ID: 1, Size: 4096}, core.ErrPointer, "regular file"},
		"too large":    {&describer{file: sealed}, segment(1, 4097), core.ErrPointer, "segment 1: "},
		"huge":         {&describer{file: sealed}, segment(1, 1<<62), core.ErrPointer, "segment 1: "},
		"no size":      {&describer{file: sealed}, segment(1, 0), core.ErrPointer, "segment 1: "},
	} {
		c := NewSegments(test.d, false)
		m, err := c.use(t.Context(), test.s, false)
		if m != nil || !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: Map = %v, %v", name, m, err)
		}
		if test.d.fail == nil && test.d.calls != 1 {
			t.Errorf("%s: %d calls", name, test.d.calls)
		}
		closed(t, c)
	}
	c := NewSegments(&describer{file: plain}, false)
	closed(t, mapped(t, c, contract.Segment{ID: 1, Size: 4096}, false), c) // a file that does not claim to be sealed
}

// TestTruncatedFileFaults: the one thing that cannot be prevented is a fault that a host can catch, and
// no other memory suffers.
func TestTruncatedFileFaults(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	c := NewSegments(&describer{file: f}, false)
	m := mapped(t, c, contract.Segment{ID: 1, Size: 8192}, false)
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	read := func(i int) (b byte, err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if fault, ok := recover().(error); ok {
				err = fault
			}
		}()
		return m.Bytes()[i], nil
	}
	if b, err := read(4095); b != 0 || err != nil {
		t.Errorf("before the new end: %d, %v", b, err)
	}
	if b, err := read(4096); err == nil {
		t.Errorf("after the new end: %d, without a fault", b)
	}
	closed(t, m, c)
}

func BenchmarkMapAgain(b *testing.B) {
	f, err := shm.Create("segment", 4096)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	c := NewSegments(&describer{file: f}, false)
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.use(b.Context(), segment(1, 4096), false)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}
