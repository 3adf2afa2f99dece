package handoff

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// publisher is a producer with a board.
type publisher struct {
	fake
	poster *board.Poster
}

func (p *publisher) Publishes(poster *board.Poster) { p.poster = poster }

// offer puts a lease on the board as x, under a ticket that is its ID.
func (p *publisher) offer(tb testing.TB, l *core.Lease) *board.Note {
	tb.Helper()
	n := p.poster.Reserve()
	body, ok := AppendOffer(nil, l)
	if !ok || !n.Write("x", body, uint64(l.ID), true) || !n.Show() {
		tb.Fatal("the lease cannot be offered")
	}
	return n
}

// boardOf joins a client to the board of a producer's, as an opened session does.
func boardOf(tb testing.TB) (*publisher, *BoardClient) {
	tb.Helper()
	p := &publisher{}
	server, err := NewServer(p, Settings{Lanes: 1})
	if err == nil {
		err = server.Offer(p)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
		if p.poster != nil {
			tb.Error("the producer keeps a board that is closed")
		}
	})
	file, err := server.Open(server.Ring().Board.Segment)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	client, err := NewBoardClient(file, server.Ring().Board)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return p, client
}

// granted takes a lease that must be there.
func granted(t *testing.T, c *BoardClient, s *Source) Grant {
	t.Helper()
	g, ok, err := c.Lease(s, core.Request{})
	if !ok || err != nil {
		t.Fatalf("Lease = %v, %v", ok, err)
	}
	return g
}

// TestOffersAreLeased: what is offered is what comes, each time under another ID, and what the board
// does not have is not there.
func TestOffersAreLeased(t *testing.T) {
	t.Parallel()
	p, c := boardOf(t)
	for name, l := range examples() {
		if _, ok := AppendOffer(nil, &l); ok != (offerable(&core.Lease{Handle: l.Handle, Fence: l.Fence}) == nil) {
			t.Errorf("%s can be offered: %v", name, ok)
		}
	}
	l := examples()["segment"]
	s := &Source{name: []byte("x")}
	if _, ok, err := c.Lease(s, core.Request{}); ok || err != nil {
		t.Errorf("Lease of what is not there = %v, %v", ok, err)
	}
	note := p.offer(t, &l)
	first, second := granted(t, c, s), granted(t, c, s)
	got := first.Whole()
	got.ID = l.ID
	if !same(got, l) || first.ID == second.ID || !OnBoard(first.ID) || OnBoard(l.ID) {
		t.Errorf("got %+v as %#x and %#x, want %+v", got, uint64(first.ID), uint64(second.ID), l)
	}
	if _, ok, err := c.Lease(s, core.Request{Writable: true}); ok || err != nil {
		t.Errorf("a lease to write = %v, %v", ok, err)
	}
	if note.Withdraw() {
		t.Error("an offer with leases is idle")
	}
	if _, ok, err := c.Lease(s, core.Request{}); ok || err != nil {
		t.Errorf("Lease of what was withdrawn = %v, %v", ok, err)
	}
	if _, last := c.Release(first.ID); last {
		t.Error("the first of two leases is the last")
	}
	if id, last := c.Release(second.ID); !last || id != l.ID {
		t.Errorf("Release = %d, %v; want the last, of lease %d", id, last, l.ID)
	}
	l.ID++
	note.Free()
	p.offer(t, &l)
	c.Release(granted(t, c, s).ID)
}

// TestOffersMakeNoGarbage: once an offer is known.
func TestOffersMakeNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	p, c := boardOf(t)
	p.offer(t, new(examples()["segment"]))
	s := &Source{name: []byte("x")}
	if allocs := testing.AllocsPerRun(100, func() { c.Release(granted(t, c, s).ID) }); allocs != 0 {
		t.Errorf("%v allocations for a lease", allocs)
	}
}

// TestBoardIsMappedWhileLeased: after Close nothing is leased, and the memory goes with the last lease.
func TestBoardIsMappedWhileLeased(t *testing.T) {
	t.Parallel()
	p, c := boardOf(t)
	l := examples()["segment"]
	p.offer(t, &l)
	s := &Source{name: []byte("x")}
	g := granted(t, c, s)
	c.Close()
	c.Close()
	if _, ok, err := c.Lease(s, core.Request{}); ok || err != nil {
		t.Errorf("Lease after Close = %v, %v", ok, err)
	}
	if c.mapping.Bytes() == nil {
		t.Error("unmapped while a lease stands")
	}
	c.Release(g.ID)
	if c.mapping.Bytes() != nil {
		t.Error("mapped after the last lease")
	}
	if _, ok, err := c.Lease(&Source{name: []byte("y")}, core.Request{}); ok || err != nil {
		t.Errorf("Lease of what is not mapped any more = %v, %v", ok, err)
	}
}

// TestFalseOffers: what a producer may not offer is an error, and not leased.
func TestFalseOffers(t *testing.T) {
	t.Parallel()
	p, c := boardOf(t)
	good, _ := AppendOffer(nil, new(examples()["segment"]))
	staged, _ := appendLease(nil, new(examples()["staged"]))
	ipc, _ := appendLease(nil, new(examples()["ipc"]))
	change := func(at int, value byte) []byte {
		b := bytes.Clone(good)
		b[at] = value
		return b
	}
	for name, body := range map[string][]byte{
		"nothing": {}, "short": good[:answerDescription], "a copy": staged, "on a GPU": ipc,
		"an ID": change(answerLeaseID, 1), "no lease": change(answerKind, answerDone),
		"writable": change(answerDescription+2, describedWritable|describedSealed|describedStrides),
		"no fence": change(answerFence, 0),
	} {
		n := p.poster.Reserve()
		if !n.Write(name, body, 1, true) || !n.Show() {
			t.Fatal("no room")
		}
		if _, ok, err := c.Lease(&Source{name: []byte(name)}, core.Request{}); ok || err == nil {
			t.Errorf("%s is leased: %v, %v", name, ok, err)
		}
		if !n.Withdraw() {
			t.Errorf("%s stays leased", name)
		}
	}
}

// TestFalseBoards: memory that could shrink, or is no board, is refused.
func TestFalseBoards(t *testing.T) {
	t.Parallel()
	empty, err := shm.Create("empty", board.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	plain, err := os.Create(t.TempDir() + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for want, c := range map[string]struct {
		file *os.File
		size int64
	}{
		"not the memory of a board": {empty, board.Size},
		"a board of 4096 bytes":     {empty, 4096},
		"not sealed":                {plain, board.Size},
	} {
		if _, err := NewBoardClient(c.file, Board{BoardSegment, c.size}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewBoardClient = %v, want %q", err, want)
		}
	}
}

// TestWildBoard: a producer that offers what was once a lease, changed here and there. Whatever the host takes holds what leases promise.
func TestWildBoard(t *testing.T) {
	t.Parallel()
	p, c := boardOf(t)
	good, _ := AppendOffer(nil, new(examples()["segment"]))
	var done atomic.Bool
	var taken, refused atomic.Int64
	var callers sync.WaitGroup
	s := &Source{name: []byte("x")}
	for range 4 {
		callers.Go(func() {
			for !done.Load() {
				g, ok, err := c.Lease(s, core.Request{})
				if err != nil {
					refused.Add(1)
				}
				if !ok {
					runtime.Gosched()
					continue
				}
				taken.Add(1)
				l := g.Whole()
				if err := errors.Join(l.Check(core.Request{Copy: core.CopyNever}), offerable(&core.Lease{Handle: l.Handle, Fence: l.Fence})); err != nil {
					t.Errorf("leased %+v: %v", l, err)
				}
				c.Release(g.ID)
			}
		})
	}
	for range 100 {
		b := bytes.Clone(good)
		for range rand.IntN(3) {
			b[rand.IntN(len(b))] = byte(rand.Uint32())
		}
		n := p.poster.Reserve()
		if n == nil || !n.Write("x", b, 1, true) || !n.Show() {
			t.Fatal("no room")
		}
		for seen := taken.Load() + refused.Load(); taken.Load()+refused.Load() < seen+2; {
			runtime.Gosched()
		}
		n.Withdraw()
		for leases, _ := p.poster.Standing(); leases > 0; leases, _ = p.poster.Standing() {
			runtime.Gosched()
		}
		n.Free()
	}
	done.Store(true)
	callers.Wait()
	if taken.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d leases, %d errors; want some of both", taken.Load(), refused.Load())
	}
}

// FuzzOffer: whatever a body says, it is a lease that an offer may have, or an error.
func FuzzOffer(f *testing.F) {
	for _, l := range examples() {
		l.ID = 0
		b, _ := appendLease(nil, &l)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := leaseOf(body)
		if err != nil {
			return
		}
		if err := errors.Join(l.Check(core.Request{Copy: core.CopyNever}), offerable(&l)); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	})
}
