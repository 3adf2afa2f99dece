package board_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// TestAlwaysWhole: while a name is given to one body after another, readers see whole bodies, of a number
// that never falls, and each ticket is said exactly once.
func TestAlwaysWhole(t *testing.T) {
	t.Parallel()
	const rounds, readers, size = 20_000, 4, 300
	p, r := connect(t)
	var ended [rounds + 1]atomic.Int32
	var done atomic.Bool
	tickets := make(chan uint64, rounds+1)
	say := func(ticket uint64) {
		if ended[ticket].Add(1) > 1 {
			t.Errorf("ticket %d was said again", ticket)
		}
		tickets <- ticket
	}
	body := func(i uint64) []byte { return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, i), size/8) }

	var callers sync.WaitGroup
	for range readers {
		callers.Go(func() {
			var o board.Offer
			buf, last := make([]byte, board.MaxText), uint64(0)
			for !done.Load() {
				if found, _ := r.Find([]byte("x"), &o, buf); !found || !r.Take(&o) {
					runtime.Gosched()
					continue
				}
				i := binary.LittleEndian.Uint64(o.Body)
				if i < last || !bytes.Equal(o.Body, body(i)) {
					t.Errorf("after %d: %x", last, o.Body)
				}
				last = i
				if ticket, over := r.Release(o.Cell); over {
					if ticket != i {
						t.Errorf("the last lease on %d gives ticket %d", i, ticket)
					}
					say(ticket)
				}
			}
		})
	}
	standing := make(map[uint64]*board.Note)
	drain := func() {
		for len(tickets) > 0 {
			i := <-tickets
			standing[i].Free()
			delete(standing, i)
		}
	}
	var before *board.Note
	for i := uint64(1); i <= rounds; i++ {
		n := p.Reserve()
		if n == nil || !n.Write("x", body(i), i, true) || !n.Show() {
			t.Fatal("no room")
		}
		standing[i] = n
		if before != nil && before.Withdraw() {
			say(i - 1)
		}
		before = n
		drain()
	}
	if before.Withdraw() {
		say(rounds)
	}
	for deadline := time.Now().Add(10 * time.Second); len(standing) > 0; runtime.Gosched() {
		if drain(); time.Now().After(deadline) {
			t.Fatalf("%d bodies never end", len(standing))
		}
	}
	done.Store(true)
	callers.Wait()
	if leases, reserved := p.Standing(); leases != 0 || reserved != 0 {
		t.Errorf("%d leases on %d notes stand in the end", leases, reserved)
	}
}

// TestWildMemory: whatever the other side writes, and whenever, each call returns, and gives what lies in
// the reader's own memory.
func TestWildMemory(t *testing.T) {
	t.Parallel()
	p, r, there := connectIn(t)
	for i := range 8 {
		post(t, p, string(rune('a'+i)), "body", uint64(i))
	}
	var done atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !done.Load() {
			wild(there)
		}
	})
	buf := make([]byte, board.MaxText)
	var o board.Offer
	for i := range 20_000 {
		found, _ := r.Find([]byte{byte('a' + i%8)}, &o, buf)
		if !found {
			continue
		}
		if len(o.Body) > board.MaxText {
			t.Fatalf("a body of %d bytes", len(o.Body))
		}
		if r.Take(&o) {
			r.Release(o.Cell)
		}
	}
	done.Store(true)
	writer.Wait()
}

// wild writes something somewhere where it matters.
func wild(mem []byte) {
	word := func(at int) *[8]byte { return (*[8]byte)(mem[at:]) }
	value := [...]uint64{0, 1, ^uint64(0), rand.Uint64(), rand.Uint64N(1 << 25), 1 << 23, 2<<24 | 1<<23}[rand.IntN(7)]
	at := [...]int{
		forksAt, namesAt + 8*rand.IntN(32), cellsAt + cellBytes*rand.IntN(16),
		cellsAt + cellBytes*rand.IntN(16) + 0x40 + 8*rand.IntN(4),
	}[rand.IntN(4)]
	binary.LittleEndian.PutUint64(word(at)[:], value)
}

// TestWildCounts: a reader that counts wrong, or says tickets that it does not have, takes nothing from
// the poster but what was offered to it.
func TestWildCounts(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, board.Size)
	p, err := board.NewPoster(there)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		for range 8 {
			wild(here)
		}
		a, b := post(t, p, "a", "body", uint64(i)), post(t, p, "b", "body", uint64(i))
		wild(here)
		a.Free() // the ticket was said too early
		b.Withdraw()
		b.Free()
		p.Standing()
	}
	if _, notes := p.Standing(); notes != 0 {
		t.Errorf("%d notes stand in the end", notes)
	}
}

// FuzzBoard: a reader of any memory that calls itself a board returns.
func FuzzBoard(f *testing.F) {
	there, here := shmtest.Twice(f, board.Size)
	p, err := board.NewPoster(there)
	if err != nil {
		f.Fatal(err)
	}
	post(f, p, "frame", "body", 1)
	f.Add(bytes.Clone(here[:0x60]), bytes.Clone(here[namesAt:][:0x40]), bytes.Clone(here[cellsAt:][:0x80]))
	f.Fuzz(func(_ *testing.T, header, names, cell []byte) {
		mem := bytes.Clone(here) // page-aligned as all large memory is
		copy(mem[:namesAt], header)
		copy(mem[namesAt:cellsAt], names)
		copy(mem[cellsAt:][:cellBytes], cell)
		r, err := board.NewReader(mem)
		if err != nil {
			return
		}
		var o board.Offer
		if found, _ := r.Find([]byte("frame"), &o, make([]byte, board.MaxText)); found && r.Take(&o) {
			r.Release(o.Cell)
		}
	})
}
