package offers

import (
	"bytes"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// A reader looks again if the program was just writing, or had just written: at first at once, then now and then,
// since the program's thread may have lost its CPU in the middle. A program that has stopped there is given up.
const (
	attemptsAtOnce = 500
	attempts       = 1000
	attemptPause   = 20 * time.Microsecond
)

// Reader is the host's side. All methods are safe for concurrent use.
type Reader struct {
	memory memory

	mu   sync.Mutex
	top  int   // holds that were ever used
	free []int // those of them that are not in use
}

// Hold is an offer that the host has taken.
type Hold struct {
	Ticket       uint64
	index, entry int
}

// NewReader reads the table of another process. mem must stay mapped as long as the reader is in use.
func NewReader(mem []byte) (*Reader, error) {
	if err := check(mem); err != nil {
		return nil, err
	}
	m, err := memoryOf(mem)
	return &Reader{memory: m}, err
}

// Names grows when a name comes or goes.
func (r *Reader) Names() uint64 { return r.memory.at(offNames).Load() }

// Forks is the number by which offers tell whether a fork has made them void.
func (r *Reader) Forks() uint64 { return r.memory.at(offForks).Load() }

// Find gives the entry of a name.
func (r *Reader) Find(name string) (index int, ok bool) {
	k := keyOf(name)
	for i := range min(r.memory.at(offUsed).Load(), maxNames) {
		i := int(i)
		if r.memory.entry(i).is(k) {
			return i, true
		}
	}
	return 0, false
}

// Is reports whether an entry that Find gave still is that of the name.
func (r *Reader) Is(index int, name string) bool {
	return r.memory.entry(index).is(keyOf(name))
}

// Publication gives what an entry's Publication is now.
func (r *Reader) Publication(index int) uint64 {
	return r.memory.entry(index).word(wordPublication).Load()
}

// Read gives entries as they were at one moment. ok is false if that cannot be had.
func (r *Reader) Read(to []Entry, indexes ...int) (sequence uint64, ok bool) {
	word := r.memory.at(offSequence)
	for i := range attempts {
		if i >= attemptsAtOnce {
			<-time.After(attemptPause)
		}
		sequence = word.Load()
		if sequence%2 == 1 {
			continue
		}
		for i, index := range indexes {
			to[i] = r.memory.entry(index).load()
		}
		if word.Load() == sequence {
			return sequence, true
		}
	}
	return 0, false
}

// Body gives the text of the description that Read gave of an entry, in memory of its own. It reports false if
// the entry has another description by now.
func (r *Reader) Body(index int, e *Entry) (body []byte, ok bool) {
	from := r.memory.entry(index)
	n := from.word(wordBody).Load()
	if n > MaxBody {
		return nil, false
	}
	body = bytes.Clone(from.body()[:n])
	var now [1]Entry
	_, ok = r.Read(now[:], index) // nothing was being written when this began, or this takes notice
	return body, ok && now[0].Description == e.Description && from.word(wordBody).Load() == n
}

// Take holds what Read gave of an entry, until Release. It reports false if the entry has changed since, if
// there is no offer, or one that a fork has made void, or if too much is held. If the hold that comes with that has a
// Ticket, the program may have seen it while it withdrew the offer, and is to be told, as after Release.
func (r *Reader) Take(index int, e *Entry) (h Hold, ok bool) {
	if e.Ticket == 0 || e.Forks != 0 && e.Forks != r.Forks() {
		return Hold{}, false
	}
	h = Hold{Ticket: e.Ticket, entry: index}
	if h.index, ok = r.use(); !ok {
		return Hold{}, false
	}
	r.memory.hold(h.index).Swap(e.Ticket) // as [shm.Sleep] says: the program looks for it when it has written the entry
	if r.Publication(index) != e.Publication {
		if withdrawn := r.Release(h); !withdrawn {
			h = Hold{}
		}
		return h, false
	}
	return h, true
}

// use finds a hold that is not in use.
func (r *Reader) use() (index int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		index = r.free[n-1]
		r.free = r.free[:n-1]
		return index, true
	}
	if r.top == maxHolds {
		return 0, false
	}
	r.top++
	r.memory.at(offTop).Store(uint64(r.top))
	return r.top - 1, true
}

// Release gives a hold back. It reports whether the program has withdrawn the offer: then the program is to
// be told.
func (r *Reader) Release(h Hold) (withdrawn bool) {
	r.memory.hold(h.index).Swap(0)
	withdrawn = !r.Offered(h)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, h.index)
	return withdrawn
}

// Offered reports whether the entry still has the offer that was taken.
func (r *Reader) Offered(h Hold) bool {
	return r.memory.entry(h.entry).word(wordTicket).Load() == h.Ticket
}

// Wait returns when an entry's Publication is no longer what it was, or when ctx ends, with its error. It
// looks for as long as spin before it sleeps.
func (r *Reader) Wait(ctx context.Context, index int, publication uint64, spin time.Duration) error {
	e := r.memory.entry(index)
	return wait(ctx, e.word(wordPublication), e.word(wordSleepers), publication, spin)
}

// WaitAny is Wait for a publication of any name after a sequence that Read or Sequence gave.
func (r *Reader) WaitAny(ctx context.Context, sequence uint64, spin time.Duration) error {
	return wait(ctx, r.memory.at(offSequence), r.memory.at(offSleepers), sequence, spin)
}

// Sequence is the number of the last publication that is complete, or is about to be.
func (r *Reader) Sequence() uint64 { return r.memory.at(offSequence).Load() &^ 1 }

func wait(ctx context.Context, word, sleepers *atomic.Uint64, old uint64, spin time.Duration) error {
	const rounds = 64
	for begin := time.Now(); spin > 0; {
		for range rounds {
			if word.Load() != old {
				return nil
			}
		}
		if time.Since(begin) >= spin {
			break
		}
	}
	awake := make(chan struct{})
	defer close(awake)
	defer context.AfterFunc(ctx, func() { rouse(word, awake) })()
	for word.Load() == old {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sleepers.Add(1)
		shm.Sleep(low(word), uint32(old), 0)
		sleepers.Add(^uint64(0))
		linger(word, old)
	}
	return nil
}

// linger waits for what a writer is about to write that has woken this up: see [Writer.Rouse]. It leaves the CPU to that.
func linger(word *atomic.Uint64, old uint64) {
	const limit = 50 * time.Microsecond
	for begin := time.Now(); word.Load() == old && time.Since(begin) < limit; {
		shm.Yield()
	}
}

// rouse wakes those who sleep on a word until awake is closed: a thread may have looked at its context just
// before that ended, and fall asleep afterwards.
func rouse(word *atomic.Uint64, awake <-chan struct{}) {
	for {
		shm.Wake(low(word), math.MaxInt32)
		select {
		case <-awake:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
