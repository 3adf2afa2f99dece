// Package offers is a table in memory that a program and its host share. In it stands what the program
// has published under which name, and in which version, so that the host learns of a new version by
// looking at a word, waits for one by sleeping on that word, and takes a lease on an array without asking
// the program, however busy that is. docs/PROTOCOL.md has the layout byte by byte.
//
// The program writes entries, one for each name, and the host writes holds: the tickets of the offers that
// it has taken. A ticket stands for a lease of the program's own. The program withdraws an offer by writing
// another one into the entry and then looking for a hold of the old ticket; the host takes an offer by
// writing a hold and then looking whether the entry still has the ticket. So one of the two notices the
// other. (These are hazard pointers: Maged Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free
// Objects", 2004.)
//
// Neither side trusts the other: the worst that a side can do is to let the other see a wrong entry, which
// the host checks as it checks all leases, or a wrong hold, which keeps memory or lets go of the host's own.
package offers

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"sync/atomic"
	"unsafe"
)

// The layout.
const (
	magic   = "NDOFFERS"
	version = 2

	offVersion  = 0x08
	offSequence = 0x40 // odd while entries are being written; hosts may sleep on its low half
	offSleepers = 0x48 // how many hosts' threads sleep on it
	offNames    = 0x50 // grows when a name comes or goes
	offUsed     = 0x58 // how many entries were ever used, which are the first
	offForks    = 0x80 // 1 and the number of forks that took shared memory away
	offTop      = 0xc0 // how many holds were ever used
	headerSize  = 4096

	entrySize = 1024
	maxNames  = 1 << 14
	maxHolds  = 4096

	offHolds = headerSize + maxNames*entrySize

	// Size is how many bytes of memory the table needs. Pages of entries that were never used are none.
	Size int64 = offHolds + maxHolds*8
)

// The words of an entry, 8 bytes each.
const (
	wordPublication = iota // the sequence at which this was written; hosts may sleep on its low half
	wordSleepers           // how many hosts' threads sleep on it
	wordName               // first half of the name's hash; 0: nobody's entry
	wordVersion
	wordPublished
	wordTicket
	wordDescription
	wordSegment
	wordSize
	wordOffset
	wordForks
	wordNameRest // second half of the name's hash
	wordBody     // how many bytes of the description follow the words
	words

	// MaxBody is how long the text of a description may be.
	MaxBody = entrySize - 8*words
)

var errLayout = errors.New("not a table of offers")

// Entry is what stands in the table for one name.
type Entry struct {
	Publication uint64 // differs from one publication of any name to the next; even
	Version     uint64 // of the name, from 1
	Published   int64  // when, in nanoseconds since 1970

	// The lease on the published array that the host may take, if Ticket is not 0.
	Ticket      uint64
	Description uint64 // of the rest: it stays the same while nothing but the following three differs
	Segment     uint64
	Size        int64
	Offset      int64
	Forks       uint64 // the table's Forks while the offer is good, or 0 if forks do not matter
}

// memory gives access to the words of a table.
type memory struct{ base unsafe.Pointer }

func memoryOf(mem []byte) (memory, error) {
	if int64(len(mem)) < Size {
		return memory{}, errLayout
	}
	return memory{unsafe.Pointer(&mem[0])}, nil
}

func (m memory) at(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(m.base, offset))
}

// body is the room for an entry's description.
func (e entry) body() []byte { return unsafe.Slice((*byte)(unsafe.Add(e.base, 8*words)), MaxBody) }

// low is the half of a word that a futex compares.
func low(w *atomic.Uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(w)) }

// entry is the words of one entry.
type entry struct{ base unsafe.Pointer }

func (m memory) entry(i int) entry { return entry{unsafe.Add(m.base, headerSize+i*entrySize)} }

func (e entry) word(i int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Add(e.base, 8*i)) }

func (m memory) hold(i int) *atomic.Uint64 { return m.at(offHolds + 8*i) }

// load reads an entry that may be changing.
func (e entry) load() Entry {
	return Entry{
		Publication: e.word(wordPublication).Load(), Version: e.word(wordVersion).Load(),
		Published: int64(e.word(wordPublished).Load()), Ticket: e.word(wordTicket).Load(),
		Description: e.word(wordDescription).Load(), Segment: e.word(wordSegment).Load(),
		Size: int64(e.word(wordSize).Load()), Offset: int64(e.word(wordOffset).Load()), Forks: e.word(wordForks).Load(),
	}
}

// store writes an entry but for its name, the publication last.
func (e entry) store(to *Entry) {
	e.word(wordVersion).Store(to.Version)
	e.word(wordPublished).Store(uint64(to.Published))
	e.word(wordTicket).Store(to.Ticket)
	e.word(wordDescription).Store(to.Description)
	e.word(wordSegment).Store(to.Segment)
	e.word(wordSize).Store(uint64(to.Size))
	e.word(wordOffset).Store(uint64(to.Offset))
	e.word(wordForks).Store(to.Forks)
	e.word(wordPublication).Store(to.Publication)
}

// key stands for a name in the table: FNV-1a in 128 bits, since whoever looks for two names that 64 bits do not
// tell apart finds them within a minute. The first half is not 0.
type key [2]uint64

func keyOf(name string) key {
	h := fnv.New128a()
	_, _ = h.Write([]byte(name)) // never fails
	var sum [16]byte
	h.Sum(sum[:0])
	return key{max(binary.BigEndian.Uint64(sum[:]), 1), binary.BigEndian.Uint64(sum[8:])}
}

// is reports whether an entry is that of a name.
func (e entry) is(k key) bool {
	return e.word(wordName).Load() == k[0] && e.word(wordNameRest).Load() == k[1]
}

// name makes an entry that of a name. Whoever sees the first half sees the second.
func (e entry) name(k key) {
	e.word(wordNameRest).Store(k[1])
	e.word(wordName).Store(k[0])
}

func format(mem []byte) {
	binary.LittleEndian.PutUint32(mem[offVersion:], version)
	copy(mem, magic)
}

func check(mem []byte) error {
	if int64(len(mem)) < Size || string(mem[:len(magic)]) != magic ||
		binary.LittleEndian.Uint32(mem[offVersion:]) != version {
		return errLayout
	}
	return nil
}
