package offers_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// wild writes something somewhere where it matters.
func wild(mem []byte) {
	value := [...]uint64{0, 1, 7, ^uint64(0), rand.Uint64(), rand.Uint64N(1 << 20), 1 << 63}[rand.IntN(7)]
	at := [...]int{
		sequenceAt, sequenceSleepersAt, namesAt, forksAt, topAt, entriesAt + 8*rand.IntN(64), entriesAt + 8*rand.IntN(64),
		holdsAt + 8*rand.IntN(16),
	}[rand.IntN(8)]
	offers.Word(mem, at).Store(value)
}

// beside calls f while others run.
func beside(f func(), others ...func()) {
	var done atomic.Bool
	var all sync.WaitGroup
	for _, other := range others {
		all.Go(func() {
			for !done.Load() {
				other()
			}
		})
	}
	f()
	done.Store(true)
	all.Wait()
}

// TestWildPrograms: whatever the program writes, and whenever, each call of the host returns.
func TestWildPrograms(t *testing.T) {
	t.Parallel()
	w, r, there, _ := connectIn(t)
	names := []string{"a", "b", "c"}
	for i, name := range names {
		publish(w, add(t, w, name), offers.Entry{Version: 1, Ticket: uint64(i + 1)})
	}
	beside(func() {
		var e [2]offers.Entry
		for i := range 1500 {
			at, ok := r.Find(names[i%len(names)])
			if !ok {
				at = i % 3
			}
			r.Is(at, "b")
			if _, ok := r.Read(e[:], at, 2); ok {
				if h, ok := r.Take(at, &e[0]); ok {
					r.Offered(h)
					r.Release(h)
				}
			}
			if i%50 != 0 {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			for _, err := range []error{r.Wait(ctx, at, r.Publication(at), 0), r.WaitAny(ctx, r.Sequence(), time.Microsecond)} {
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			cancel()
		}
	}, func() { wild(there) })
}

// TestWildHosts: whatever the host writes, and whenever, each call of the program returns, and what it reads
// of its own table is what it wrote.
func TestWildHosts(t *testing.T) {
	t.Parallel()
	w, _, _, here := connectIn(t)
	beside(func() {
		for i := range uint64(3000) {
			x, ok := w.Add("x")
			if !ok {
				t.Error("a host fills the table")
			}
			publish(w, x, offers.Entry{Version: i, Ticket: i + 1, Forks: w.Forked()})
			w.Held(i)
			if n := w.Holds(); n < 0 || n > 4096 {
				t.Errorf("%d holds", n)
			}
			w.Begin()
			w.Remove(x)
			w.End()
		}
	}, func() { wild(here) })
}

// FuzzReader: a reader of any memory that calls itself a table returns.
func FuzzReader(f *testing.F) {
	there, here := shmtest.Twice(f, offers.Size)
	w, err := offers.NewWriter(there)
	if err != nil {
		f.Fatal(err)
	}
	publish(w, add(f, w, "frame"), offers.Entry{Version: 1, Ticket: 1})
	f.Add(bytes.Clone(here[:0x100]), bytes.Clone(here[entriesAt:][:0x100]), bytes.Clone(here[holdsAt:][:0x10]))
	f.Fuzz(func(_ *testing.T, header, entries, holds []byte) {
		mem := bytes.Clone(here) // page-aligned as all large memory is
		copy(mem[:entriesAt], header)
		copy(mem[entriesAt:holdsAt], entries)
		copy(mem[holdsAt:], holds)
		r, err := offers.NewReader(mem)
		if err != nil {
			return
		}
		at, _ := r.Find("frame")
		var e [1]offers.Entry
		if _, ok := r.Read(e[:], at); !ok {
			return
		}
		if h, ok := r.Take(at, &e[0]); ok {
			r.Release(h)
		}
	})
}
