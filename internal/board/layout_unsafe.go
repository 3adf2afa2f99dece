// Package board is memory in which one process offers leases that another takes and gives back by
// atomic operations alone: neither a thread of the first nor a lock of its interpreter takes part.
// docs/PROTOCOL.md has the layout byte by byte.
//
// A [Poster] writes what it offers into a cell, and then makes the cell live under a name. A [Reader]
// finds the name, copies what the cell says, and then takes a lease, which succeeds only if the cell
// still is what it was. A cell's word holds its generation, whether it is live, and how many leases on
// it stand, so that all three change together. A cell that was withdrawn gives no lease any more; the
// reader that gives the last one back is told to say so, and then the cell can be used again, in another
// generation.
//
// Neither side trusts the other. What the reader copies it checks, or has its user check; what it writes
// are counts, and wrong counts make leases end early or late, and nothing else.
package board

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout. Words that one side writes while the other looks have cache lines of their own.
const (
	magic   = "NDBOARD\x01"
	version = 1

	offVersion = 0x08
	offForks   = 0x40 // begins with 1, and grows before the poster's process forks
	offChanges = 0x80 // grows when a name has come
	offNames   = 0x1000
	offCells   = offNames + maxNames*nameSize

	nameSize = 0x10
	nameHash = 0x00 // of the name; 0: no name
	nameCell = 0x08 // the number of its cell, from 1; 0: none
	maxNames = 1024

	cellSize   = 0x800
	cellWord   = 0x00
	cellTicket = 0x40 // what is to be said when the last lease has ended
	cellForks  = 0x48 // the forks at which it was written, or 0 if they do not matter
	cellName   = 0x50 // the length of the name
	cellBody   = 0x54 // the length of the body
	cellText   = 0x58 // the name, and then the body
	maxCells   = 1 << CellBits

	// CellBits is how many bits the number of a cell has.
	CellBits = 11

	// Size is how many bytes a board has.
	Size = offCells + maxCells*cellSize

	// MaxText is how many bytes a name and its body may have together.
	MaxText = cellSize - cellText
)

// The parts of a cell's word.
const (
	countBits     = 23
	maxCount      = 1<<countBits - 1
	live          = 1 << countBits
	maxGeneration = 1<<(64-countBits-1) - 1
)

func count(word uint64) int         { return int(word & maxCount) }
func isLive(word uint64) bool       { return word&live != 0 }
func generation(word uint64) uint64 { return word >> (countBits + 1) }
func wordOf(generation uint64) uint64 {
	return generation << (countBits + 1)
}

// errLayout says that memory is not that of a board.
var errLayout = errors.New("not the memory of a board")

// format makes mem, which is zero, the memory of a board.
func format(mem []byte) error {
	if len(mem) < Size {
		return fmt.Errorf("%w: %d bytes", errLayout, len(mem))
	}
	word(mem, offForks).Store(1)
	binary.LittleEndian.PutUint32(mem[offVersion:], version)
	copy(mem, magic)
	return nil
}

// check looks whether format was here.
func check(mem []byte) error {
	if len(mem) < Size || string(mem[:len(magic)]) != magic {
		return errLayout
	}
	if v := binary.LittleEndian.Uint32(mem[offVersion:]); v != version {
		return fmt.Errorf("%w: version %d", errLayout, v)
	}
	return nil
}

// word is a 64-bit number in shared memory.
func word(mem []byte, offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[offset]))
}

// slot is where one name stands.
type slot struct{ hash, cell *atomic.Uint64 }

func slotAt(mem []byte, i int) slot {
	at := offNames + i*nameSize
	return slot{hash: word(mem, at+nameHash), cell: word(mem, at+nameCell)}
}

// cellAt is the memory of one cell.
func cellAt(mem []byte, i uint32) []byte {
	return mem[offCells+int(i)*cellSize:][:cellSize:cellSize]
}

// hashOf is FNV-1a of a name, and never 0.
func hashOf[T string | []byte](name T) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return max(h, 1)
}
