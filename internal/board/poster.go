package board

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// Poster is the side that offers. All methods, and those of its notes, are safe for concurrent use, and
// wait for nothing but each other.
type Poster struct {
	forks, changes *atomic.Uint64

	mu          sync.Mutex
	mem         []byte // nil after Close
	generations []uint64
	free        []uint32       // cells that were used; the rest begins behind generations
	slots       map[string]int // of the names that are shown
	freeSlots   []int          // that were used; the rest begins behind nextSlot
	nextSlot    int
	reserved    int
}

// NewPoster makes mem, which is zero, page-aligned and [Size] bytes long, the memory of a board. It
// must stay mapped until Close has returned.
func NewPoster(mem []byte) (*Poster, error) {
	if err := format(mem); err != nil {
		return nil, err
	}
	return &Poster{
		forks: word(mem, offForks), changes: word(mem, offChanges), mem: mem, slots: make(map[string]int),
	}, nil
}

// Close withdraws all. Later calls do nothing; the memory is not touched any more, but by who counts in
// what [Poster.Forks] gave.
func (p *Poster) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil {
		return
	}
	for i := range p.generations {
		word(cellAt(p.mem, uint32(i)), cellWord).And(^uint64(live))
	}
	p.mem = nil
}

// Forks is the number of forks of this process. Whoever separates what it shares from what a fork makes
// adds 1 first.
func (p *Poster) Forks() *atomic.Uint64 { return p.forks }

// Forked is what Forks counts, and 0 after Close.
func (p *Poster) Forked() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil {
		return 0
	}
	return p.forks.Load()
}

// Standing is how many leases stand, as far as the other side has counted right, and how many notes they
// stand on, or may.
func (p *Poster) Standing() (leases, notes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil {
		return 0, p.reserved
	}
	for i := range p.generations {
		leases += count(word(cellAt(p.mem, uint32(i)), cellWord).Load())
	}
	return leases, p.reserved
}

// Note is one offer. It is reserved, written, shown, withdrawn and freed, in this order; any but the first
// and the last may be left out.
type Note struct {
	poster     *Poster
	cell       uint32
	generation uint64

	// Guarded by the poster's lock.
	name    string
	forks   uint64 // when it was reserved, or 0 if they do not matter
	written bool
	freed   bool
}

// Reserve takes a cell that nobody uses, or gives nil if there is none.
func (p *Poster) Reserve() *Note {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil {
		return nil
	}
	for len(p.free) > 0 {
		i := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if p.generations[i] < maxGeneration { // else it is used up
			return p.reserve(i)
		}
	}
	if len(p.generations) == maxCells {
		return nil
	}
	p.generations = append(p.generations, 0)
	return p.reserve(uint32(len(p.generations) - 1))
}

func (p *Poster) reserve(i uint32) *Note {
	p.generations[i]++
	p.reserved++
	word(cellAt(p.mem, i), cellWord).Store(wordOf(p.generations[i]))
	return &Note{poster: p, cell: i, generation: p.generations[i], forks: p.forks.Load()}
}

// Write says what is offered: a body under a name, and the ticket that is handed out with the end of the
// last lease. If forks is true, it is offered until the process forks, counted from Reserve. Write reports
// false if there is no room for it.
func (n *Note) Write(name string, body []byte, ticket uint64, forks bool) bool {
	p := n.poster
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil || n.freed || n.written || len(name) == 0 || len(name)+len(body) > MaxText {
		return false
	}
	n.name, n.written = name, true
	if !forks {
		n.forks = 0
	}
	c := cellAt(p.mem, n.cell)
	word(c, cellTicket).Store(ticket)
	binary.LittleEndian.PutUint64(c[cellForks:], n.forks)
	binary.LittleEndian.PutUint32(c[cellName:], uint32(len(name)))
	binary.LittleEndian.PutUint32(c[cellBody:], uint32(len(body)))
	copy(c[cellText+copy(c[cellText:], name):], body)
	return true
}

// Show offers what was written, from now on, in the place of what had the name. It reports false if there
// are too many names.
func (n *Note) Show() bool {
	p := n.poster
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil || n.freed || !n.written {
		return false
	}
	i, known := p.slots[n.name]
	if !known {
		var ok bool
		if i, ok = p.slot(); !ok {
			return false
		}
		p.slots[n.name] = i
	}
	word(cellAt(p.mem, n.cell), cellWord).Or(live)
	s := slotAt(p.mem, i)
	s.cell.Store(uint64(n.cell) + 1)
	if !known {
		s.hash.Store(hashOf(n.name))
		p.changes.Add(1)
	}
	return true
}

// slot takes one that no name has.
func (p *Poster) slot() (int, bool) {
	if last := len(p.freeSlots) - 1; last >= 0 {
		i := p.freeSlots[last]
		p.freeSlots = p.freeSlots[:last]
		return i, true
	}
	if p.nextSlot == maxNames {
		return 0, false
	}
	p.nextSlot++
	return p.nextSlot - 1, true
}

// Withdraw ends the offer: no lease is taken any more. It reports whether none stands. If one does, the
// other side says the ticket when the last has ended.
func (n *Note) Withdraw() (idle bool) {
	p := n.poster
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem == nil || n.freed {
		return true
	}
	n.hide()
	return count(word(cellAt(p.mem, n.cell), cellWord).And(^uint64(live))) == 0
}

// hide takes the name away, unless another note has it.
func (n *Note) hide() {
	p := n.poster
	i, ok := p.slots[n.name]
	if !ok {
		return
	}
	if s := slotAt(p.mem, i); s.cell.Load() == uint64(n.cell)+1 {
		s.hash.Store(0)
		s.cell.Store(0)
		delete(p.slots, n.name)
		p.freeSlots = append(p.freeSlots, i)
	}
}

// Stale reports whether the process has forked since the note was written, and that matters.
func (n *Note) Stale() bool {
	n.poster.mu.Lock()
	defer n.poster.mu.Unlock()
	return n.poster.mem != nil && n.written && n.forks != 0 && n.forks != n.poster.forks.Load()
}

// Free lets the cell be used again, when the ticket was said or none was taken. It is idempotent. If a
// lease stands all the same, its holder has said what is not true, and harms itself.
func (n *Note) Free() {
	p := n.poster
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.freed {
		return
	}
	n.freed = true
	p.reserved--
	if p.mem == nil {
		return
	}
	n.hide()
	word(cellAt(p.mem, n.cell), cellWord).Store(wordOf(n.generation))
	p.free = append(p.free, n.cell)
}
