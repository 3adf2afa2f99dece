package hostplugin

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
	"github.com/ndbridge/ndbridge/hostplugin/internal/segments"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// BenchmarkHostAlone is what Into and Close cost the host itself: the answers lie there before they are
// asked for.
func BenchmarkHostAlone(b *testing.B) {
	p := newProphet(b)
	s := newSession(&Host{}, &launch{program: Program{Name: "prophet"}})
	s.memory.Segments = segments.New(p, false)
	gone := make(chan struct{})
	var err error
	if s.lessor, err = lessor.Open(b.Context(), p, gone, time.Second, s.stray); err != nil {
		b.Fatal(err)
	}
	defer s.lessor.Close()
	src, err := s.Source("frame")
	if err != nil {
		b.Fatal(err)
	}
	var v core.View
	view := func() {
		if err := src.Into(b.Context(), &v); err != nil {
			b.Fatal(err)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
	view()
	p.replaceServer(b)
	b.ReportAllocs()
	for b.Loop() {
		p.foretell()
		view()
	}
}

// prophet is a producer of one array, whose server's answer is given again and again.
type prophet struct {
	server *handoff.Server
	file   *os.File
	memory *shm.Mapping
	last   core.LeaseID
	asked  atomic.Int64 // by gRPC
}

func newProphet(b *testing.B) *prophet {
	b.Helper()
	f, err := shm.Create("frame", 4096)
	if err != nil {
		b.Fatal(err)
	}
	p := &prophet{file: f}
	if p.server, err = handoff.NewServer(p, handoff.Settings{Lanes: 1}); err != nil {
		b.Fatal(err)
	}
	ring, err := p.server.Open(handoff.Segment)
	if err != nil {
		b.Fatal(err)
	}
	defer ring.Close()
	if p.memory, err = shm.Map(ring, p.server.Ring().Size, true); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(p.memory.Close(), p.file.Close()); err != nil {
			b.Error(err)
		}
		if n := p.asked.Load(); n > 1 {
			b.Logf("%d leases by gRPC", n)
		}
	})
	return p
}

// word is one of the ring's, as docs/PROTOCOL.md has them.
func (p *prophet) word(offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&p.memory.Bytes()[offset]))
}

// replaceServer ends the server, and hides that from the client.
func (p *prophet) replaceServer(b *testing.B) {
	b.Helper()
	if err := p.server.Close(); err != nil {
		b.Error(err)
	}
	p.word(0xc0).Store(0)
}

// foretell answers the next request, or the one that waits.
func (p *prophet) foretell() {
	answered, requested := p.word(0x1080), p.word(0x1000).Load()
	if answered.Load() == requested {
		requested++
	}
	answered.Store(requested)
}

func (p *prophet) Ring() handoff.Ring { return p.server.Ring() }

func (p *prophet) Lease(context.Context, string, core.Request) (core.Lease, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{4, 4}})
	p.last++
	p.asked.Add(1)
	return core.Lease{
		ID: p.last, Layout: l, Handle: core.Segment{ID: 1, Size: 4096, Sealed: true}, Fence: core.Ready{},
		Framework: "numpy", Route: core.RouteSharedHeap,
	}, err
}

func (p *prophet) Descriptor(_ context.Context, id core.SegmentID, _ bool) (*os.File, error) {
	if id == handoff.Segment {
		return p.server.Open(handoff.Segment)
	}
	return shm.ReadOnly(p.file)
}

// Release is asked for when the background has given leases back through the ring, and has got the
// answer that was meant for the next view.
func (p *prophet) Release(context.Context, ...core.LeaseID) error {
	p.foretell()
	return nil
}
