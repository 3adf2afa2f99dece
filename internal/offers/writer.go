package offers

import (
	"math"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// Writer is the program's side. The caller orders its calls, but for Forks and Forked, which are safe for
// concurrent use.
type Writer struct {
	memory memory
	fresh  int   // the first entry that no name has ever had
	free   []int // entries that were given back
	told   []int // entries written since Begin
}

// NewWriter makes mem, which is zero, page-aligned and [Size] bytes long, an empty table. mem must stay
// mapped as long as the writer, and what Forks gives, are in use.
func NewWriter(mem []byte) (*Writer, error) {
	m, err := memoryOf(mem)
	if err != nil {
		return nil, err
	}
	format(mem)
	m.at(offForks).Store(1)
	return &Writer{memory: m}, nil
}

// Forks is the word that is to grow before the process forks.
func (w *Writer) Forks() *atomic.Uint64 { return w.memory.at(offForks) }

// Forked is the value of that word.
func (w *Writer) Forked() uint64 { return w.Forks().Load() }

// Add gets an entry for a name that has none. It reports false if there is no room: then the table does not
// tell of the name.
func (w *Writer) Add(name string) (index int, ok bool) {
	switch last := len(w.free) - 1; {
	case last >= 0:
		index, w.free = w.free[last], w.free[:last]
	case w.fresh < maxNames:
		index = w.fresh
		w.fresh++
	default:
		return 0, false
	}
	w.memory.entry(index).name(keyOf(name))
	if used := w.memory.at(offUsed); uint64(index) >= used.Load() {
		used.Store(uint64(index) + 1)
	}
	w.memory.at(offNames).Add(1)
	return index, true
}

// Room is for how many more names there is room.
func (w *Writer) Room() int { return maxNames - w.fresh + len(w.free) }

// Remove gives the entry of a name back. It is called between Begin and End.
func (w *Writer) Remove(index int) {
	w.Write(index, &Entry{}, nil)
	w.memory.entry(index).name(key{})
	w.memory.at(offNames).Add(1)
	w.free = append(w.free, index)
}

// Rouse wakes the hosts that sleep until an entry is written, which is about to happen: to wake up takes them as long as
// it takes to get there.
func (w *Writer) Rouse(index int) {
	e := w.memory.entry(index)
	wake(e.word(wordPublication), e.word(wordSleepers))
	wake(w.memory.at(offSequence), w.memory.at(offSleepers))
}

// Begin begins a publication: what is written until End is seen at once or not at all. No caller of it may
// wait for anything before End.
func (w *Writer) Begin() { w.memory.at(offSequence).Add(1) }

// Write writes an entry, whose Publication is set, and the text of its description, which is as long as
// [MaxBody] at most.
func (w *Writer) Write(index int, e *Entry, body []byte) {
	e.Publication = w.memory.at(offSequence).Load() + 1
	to := w.memory.entry(index)
	if to.word(wordDescription).Load() != e.Description {
		to.word(wordBody).Store(uint64(copy(to.body(), body)))
	}
	to.store(e)
	w.told = append(w.told, index)
}

// End ends a publication, and wakes the hosts that wait for it.
func (w *Writer) End() {
	sequence := w.memory.at(offSequence)
	sequence.Add(1)
	for _, i := range w.told {
		e := w.memory.entry(i)
		wake(e.word(wordPublication), e.word(wordSleepers))
	}
	w.told = w.told[:0]
	wake(sequence, w.memory.at(offSleepers))
}

func wake(word, sleepers *atomic.Uint64) {
	if sleepers.Load() != 0 {
		shm.Wake(low(word), math.MaxInt32)
	}
}

// Held reports whether the host holds the ticket of an offer that no entry has any more. After false it
// never will.
func (w *Writer) Held(ticket uint64) bool {
	for i := range min(int(w.memory.at(offTop).Load()), maxHolds) {
		if w.memory.hold(i).Load() == ticket {
			return true
		}
	}
	return false
}

// Holds counts what the host holds.
func (w *Writer) Holds() (n int) {
	for i := range min(int(w.memory.at(offTop).Load()), maxHolds) {
		if w.memory.hold(i).Load() != 0 {
			n++
		}
	}
	return n
}
