package offers_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/internal/offers"
)

// slot is memory that is offered: each word holds the number of its ticket while that is held.
type slot [16]atomic.Uint64

// lender is a program that offers slots and uses each again once nobody holds it.
type lender struct {
	w       *offers.Writer
	slots   [12]slot
	free    []int
	retired map[uint64]int // slots, by the tickets that stand in the table no more
	next    uint64
}

// offer fills a slot and writes an entry for it, and gives the ticket.
func (l *lender) offer(index int, version uint64) (ticket uint64) {
	at := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	l.next++
	for i := range l.slots[at] {
		l.slots[at][i].Store(l.next)
	}
	l.w.Write(index, &offers.Entry{Version: version, Ticket: l.next, Offset: int64(at)}, nil)
	return l.next
}

// collect poisons the slots that nobody holds.
func (l *lender) collect() {
	for ticket, at := range l.retired {
		if l.w.Held(ticket) {
			continue
		}
		for i := range l.slots[at] {
			l.slots[at][i].Store(^uint64(0))
		}
		delete(l.retired, ticket)
		l.free = append(l.free, at)
	}
}

// TestWhatIsHeldStays: while a program offers memory after memory, and uses again what the host does not hold,
// readers see each whole and unchanged for as long as they hold it. The program looks for what has been let go
// when it offers something else, and when it is told: so in the end nothing is kept for nobody.
func TestWhatIsHeldStays(t *testing.T) {
	t.Parallel()
	const rounds, readers = 15_000, 4
	w, r := connect(t)
	x := add(t, w, "x")
	l := &lender{w: w, retired: make(map[uint64]int)}
	for i := range l.slots {
		l.free = append(l.free, i)
	}
	w.Begin()
	ticket := l.offer(x, 1)
	w.End()
	told := make(chan struct{}, readers*rounds)
	var done atomic.Bool
	var taken atomic.Int64
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			var e [1]offers.Entry
			for last, i := uint64(0), 0; !done.Load() && !t.Failed(); i++ {
				if _, ok := r.Read(e[:], x); !ok {
					continue // a writer that has no CPU just then
				}
				if i%2 == 0 {
					runtime.Gosched() // others have a turn between the look and the hold
				}
				h, ok := r.Take(x, &e[0])
				if !ok {
					continue
				}
				taken.Add(1)
				for range 3 {
					for i := range l.slots[e[0].Offset] {
						if got := l.slots[e[0].Offset][i].Load(); got != h.Ticket {
							t.Errorf("word %d of offer %d is %#x", i, h.Ticket, got)
						}
					}
					runtime.Gosched()
				}
				if e[0].Version < last {
					t.Errorf("version %d after %d", e[0].Version, last)
				}
				last = e[0].Version
				if r.Release(h) {
					told <- struct{}{}
				}
			}
		})
	}
	hear := func() {
		for len(told) > 0 {
			<-told
			l.collect()
		}
	}
	for v := uint64(2); v <= rounds; v++ {
		eventually(t, "there is room", func() bool { hear(); return len(l.free) > 0 })
		slot := int(read(t, r, x).Offset)
		w.Begin()
		next := l.offer(x, v)
		w.End()
		l.retired[ticket] = slot
		ticket = next
		l.collect()
		if v == rounds/2 {
			eventually(t, "the readers take what is offered", func() bool { hear(); return taken.Load() > 100 })
		}
	}
	done.Store(true)
	all.Wait()
	hear()
	if len(l.retired) != 0 || w.Holds() != 0 {
		t.Errorf("%d slots are kept for %d holds in the end", len(l.retired), w.Holds())
	}
}

// TestOneMoment: entries that are written at once are read at once, while names come and go beside them.
func TestOneMoment(t *testing.T) {
	t.Parallel()
	const rounds, readers, width = 10_000, 3, 5
	w, r := connect(t)
	var indexes [width]int
	write := func(v uint64) {
		for _, i := range indexes {
			w.Write(i, &offers.Entry{Version: v, Published: int64(v), Ticket: v, Segment: v, Size: int64(v), Offset: int64(v), Description: v}, nil)
		}
	}
	w.Begin()
	for i := range indexes {
		indexes[i] = add(t, w, fmt.Sprint("name", i))
	}
	write(1)
	w.End()
	var reads atomic.Int64
	var done atomic.Bool
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			var e [width]offers.Entry
			for last := uint64(0); !done.Load(); {
				sequence, ok := r.Read(e[:], indexes[:]...)
				if !ok {
					continue
				}
				reads.Add(1)
				v := e[0].Version
				want := offers.Entry{
					Publication: e[0].Publication, Version: v, Published: int64(v), Ticket: v, Segment: v, Size: int64(v),
					Offset: int64(v), Description: v,
				}
				for i := range e {
					if e[i] != want || e[i].Publication > sequence || v < last {
						t.Errorf("entry %d is %+v at %d, after version %d; want %+v", i, e[i], sequence, last, want)
						return
					}
				}
				last = v
			}
		})
	}
	for v := uint64(2); v <= rounds || reads.Load() < 1000 && !t.Failed(); v++ {
		w.Begin()
		write(v)
		passing := add(t, w, "passing")
		w.Write(passing, &offers.Entry{Version: 1}, nil)
		w.End()
		w.Begin()
		w.Remove(passing)
		w.End()
	}
	done.Store(true)
	all.Wait()
}
