package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout. Each word that one side writes while the other looks at it has a cache line of its own.
const (
	magic   = "NDMAIL\x00\x01"
	version = 1

	headerSize = 4096
	offVersion = 0x08
	offSlots   = 0x0c
	offBell    = 0x40 // the server sleeps on it; clients change it to wake it
	offAsleep  = 0x80 // 1 while the server sleeps, or is about to
	offCPU     = 0x84 // the server's CPU when it last looked, plus 1; 0 if it has not looked
	offClosed  = 0xc0 // 1 when no more is served

	slotSize      = 64 << 10
	slotRequested = 0x00 // number of the last request
	slotSleeping  = 0x40 // 1 while the caller sleeps, or is about to
	slotCPU       = 0x44 // the caller's CPU when it last looked, plus 1; 0 if it has not looked
	slotAnswered  = 0x80 // number of the last answer; the caller sleeps on it
	slotEarly     = 0x84 // number of the request whose answer is shown before it holds; 0: none
	slotRequest   = 0xc0 // its length (4 bytes) and the request
	slotAnswer    = 0x4000

	// MaxRequest and MaxAnswer are how many bytes a request and an answer may have.
	MaxRequest = slotAnswer - slotRequest - 4
	MaxAnswer  = slotSize - slotAnswer - 4

	// MaxSlots is how many callers may be served at once.
	MaxSlots = 64
)

// MailboxSize is how many bytes of memory a mailbox of that many slots needs.
func MailboxSize(slots int) int64 { return headerSize + int64(slots)*slotSize }

// errLayout says that memory is not that of a mailbox.
var errLayout = errors.New("not the memory of a mailbox")

// format makes mem, which is zero, the memory of a mailbox.
func format(mem []byte, slots int) error {
	if slots < 1 || slots > MaxSlots || int64(len(mem)) < MailboxSize(slots) {
		return fmt.Errorf("%w: %d slots in %d bytes", errLayout, slots, len(mem))
	}
	binary.LittleEndian.PutUint32(mem[offSlots:], uint32(slots))
	binary.LittleEndian.PutUint32(mem[offVersion:], version)
	copy(mem, magic)
	return nil
}

// slotsOf reads what format has written.
func slotsOf(mem []byte) (int, error) {
	if len(mem) < headerSize || string(mem[:len(magic)]) != magic {
		return 0, errLayout
	}
	v, slots := binary.LittleEndian.Uint32(mem[offVersion:]), int(binary.LittleEndian.Uint32(mem[offSlots:]))
	if v != version || slots < 1 || slots > MaxSlots || int64(len(mem)) < MailboxSize(slots) {
		return 0, fmt.Errorf("%w: version %d, %d slots in %d bytes", errLayout, v, slots, len(mem))
	}
	return slots, nil
}

// Word is a 32-bit number in shared memory, at an offset that 4 divides.
func Word(mem []byte, offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&mem[offset]))
}

// slot is one caller's part of the memory.
type slot struct {
	requested, sleeping, cpu, answered, early *atomic.Uint32
	request, answer                           []byte // each with its length before it
}

func slotAt(mem []byte, i int) slot {
	m := mem[headerSize+i*slotSize:][:slotSize:slotSize]
	return slot{
		requested: Word(m, slotRequested),
		sleeping:  Word(m, slotSleeping),
		cpu:       Word(m, slotCPU),
		answered:  Word(m, slotAnswered),
		early:     Word(m, slotEarly),
		request:   m[slotRequest:slotAnswer],
		answer:    m[slotAnswer:],
	}
}

// put writes a message and its length.
func put(to, message []byte) {
	binary.LittleEndian.PutUint32(to, uint32(len(message)))
	copy(to[4:], message)
}

// take copies a message behind buf[:0], which grows if it is too small. An impossible length is taken for
// an empty message.
func take(from, buf []byte) []byte {
	n := int(binary.LittleEndian.Uint32(from))
	if n < 0 || n > len(from)-4 {
		return buf[:0]
	}
	return append(buf[:0], from[4:4+n]...)
}
