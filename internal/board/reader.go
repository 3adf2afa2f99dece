package board

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// attempts bounds how often a reader tries again because the other side was just changing something.
const attempts = 32

// Reader is the side that leases. All methods are safe for concurrent use, and wait for nothing.
type Reader struct {
	mem            []byte
	forks, changes *atomic.Uint64
}

// NewReader uses the memory of a board that another process has made.
func NewReader(mem []byte) (*Reader, error) {
	if err := check(mem); err != nil {
		return nil, err
	}
	return &Reader{mem: mem, forks: word(mem, offForks), changes: word(mem, offChanges)}, nil
}

// Offer is what a cell said. The body is a copy, which the other side has made up and nobody has checked.
type Offer struct {
	Cell       uint32
	Body       []byte
	generation uint64
	forks      uint64
	slot       int // of its name
}

// Changes is a number that is another one after a name has come.
func (r *Reader) Changes() uint64 { return r.changes.Load() }

// Find copies what is offered under a name into buf, which has room for [MaxText] bytes. It begins where
// the name was found before, in the offer o, and looks elsewhere then. After false the name is not there
// if sure is true; if not, it may be.
func (r *Reader) Find(name []byte, o *Offer, buf []byte) (found, sure bool) {
	hash := hashOf(name)
	for range attempts {
		sure = true
		for i := -1; i < maxNames; i++ {
			at := i
			if i < 0 {
				at = o.slot
			}
			s := slotAt(r.mem, at)
			if s.hash.Load() != hash {
				continue
			}
			same, stable := r.read(s, name, o, buf)
			if same && stable {
				o.slot = at
				return true, true
			}
			sure = sure && stable
		}
		if sure {
			return false, true
		}
	}
	return false, false
}

// read copies the cell of a slot. stable says that it was live, and the same, all the time; same that it
// has the name.
func (r *Reader) read(s slot, name []byte, o *Offer, buf []byte) (same, stable bool) {
	number := s.cell.Load()
	if number == 0 || number > maxCells {
		return false, number != 0 // a slot that is just being given away has a hash and no cell
	}
	o.Cell = uint32(number - 1)
	c := cellAt(r.mem, o.Cell)
	before := word(c, cellWord).Load()
	o.generation, o.forks = generation(before), word(c, cellForks).Load()
	n, m := uint64(binary.LittleEndian.Uint32(c[cellName:])), uint64(binary.LittleEndian.Uint32(c[cellBody:]))
	if n+m > MaxText {
		n, m = 0, 0
	}
	copy(buf, c[cellText:][:n+m])
	after := word(c, cellWord).Load()
	if !isLive(before) || !isLive(after) || generation(after) != o.generation {
		return false, false
	}
	o.Body = buf[n:][:m]
	return bytes.Equal(buf[:n], name), true
}

// Stale reports whether a fork has separated what is offered since from what the offer says.
func (r *Reader) Stale(o *Offer) bool { return o.forks != 0 && o.forks != r.forks.Load() }

// Take takes a lease on what an offer says, if it is still offered. Each is given back by Release.
func (r *Reader) Take(o *Offer) bool {
	if r.Stale(o) {
		return false
	}
	w := word(cellAt(r.mem, o.Cell), cellWord)
	for range attempts {
		now := w.Load()
		if !isLive(now) || generation(now) != o.generation || count(now) == maxCount {
			return false
		}
		if w.CompareAndSwap(now, now+1) {
			return true
		}
	}
	return false
}

// Release gives a lease on a cell back. If it was the last on what is not offered any more, the other
// side is to be told the ticket.
func (r *Reader) Release(cell uint32) (ticket uint64, last bool) {
	c := cellAt(r.mem, cell)
	now := word(c, cellWord).Add(^uint64(0))
	if isLive(now) || count(now) != 0 {
		return 0, false
	}
	return word(c, cellTicket).Load(), true
}
