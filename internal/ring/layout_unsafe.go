// Package ring carries requests and answers between two processes through memory that both have
// mapped, without a system call while both are awake. docs/PROTOCOL.md has the layout byte by byte.
//
// The memory is divided into lanes. A caller has a lane for itself while its request is under way. It
// writes the request, then the request's number; the server answers in the same lane, then writes that
// number as the answer's. Each side looks for the other's number for a short time, its spin, and then
// sleeps on a futex until the other wakes it.
//
// Neither side trusts the other. What comes is copied once into private memory and only then looked at;
// whatever the other side writes, and whenever, the worst that happens is a wrong request or answer,
// which those who use this package check.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The layout. Each word that one side writes while the other looks at it has a cache line of its own.
const (
	magic   = "NDBRING\x01"
	version = 1

	headerSize = 4096
	offVersion = 0x08
	offLanes   = 0x0c
	offBell    = 0x40 // the server sleeps on it; clients change it to wake it
	offAsleep  = 0x80 // 1 while the server sleeps, or is about to
	offCPU     = 0x84 // the server's CPU when it last looked, and 1; 0 if it has not
	offClosed  = 0xc0 // 1 when no more is served

	laneSize      = 8192
	laneRequested = 0x00 // number of the last request
	laneSleeping  = 0x40 // 1 while the caller sleeps, or is about to
	laneCPU       = 0x44 // the caller's CPU when it last looked, and 1; 0 if it has not
	laneAnswered  = 0x80 // number of the last answer; the caller sleeps on it
	laneRequest   = 0xc0 // its length (4 bytes) and the request
	laneAnswer    = 0x1000

	// MaxRequest and MaxAnswer are how many bytes a request and an answer may have.
	MaxRequest = laneAnswer - laneRequest - 4
	MaxAnswer  = laneSize - laneAnswer - 4

	// MaxLanes is how many callers may be served at once.
	MaxLanes = 64
)

// Size is how many bytes of memory a ring of that many lanes needs.
func Size(lanes int) int64 { return headerSize + int64(lanes)*laneSize }

// errLayout says that memory is not that of a ring.
var errLayout = errors.New("not the memory of a ring")

// format makes mem, which is zero, the memory of a ring.
func format(mem []byte, lanes int) error {
	if lanes < 1 || lanes > MaxLanes || int64(len(mem)) < Size(lanes) {
		return fmt.Errorf("%w: %d lanes in %d bytes", errLayout, lanes, len(mem))
	}
	binary.LittleEndian.PutUint32(mem[offLanes:], uint32(lanes))
	binary.LittleEndian.PutUint32(mem[offVersion:], version)
	copy(mem, magic)
	return nil
}

// lanesOf reads what format has written.
func lanesOf(mem []byte) (int, error) {
	if len(mem) < headerSize || string(mem[:len(magic)]) != magic {
		return 0, errLayout
	}
	v, lanes := binary.LittleEndian.Uint32(mem[offVersion:]), int(binary.LittleEndian.Uint32(mem[offLanes:]))
	if v != version || lanes < 1 || lanes > MaxLanes || int64(len(mem)) < Size(lanes) {
		return 0, fmt.Errorf("%w: version %d, %d lanes in %d bytes", errLayout, v, lanes, len(mem))
	}
	return lanes, nil
}

// word is a 32-bit number in shared memory.
func word(mem []byte, offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&mem[offset]))
}

// lane is one caller's part of the memory.
type lane struct {
	requested, sleeping, cpu, answered *atomic.Uint32
	request, answer                    []byte // each with its length before it
}

func laneAt(mem []byte, i int) lane {
	m := mem[headerSize+i*laneSize:][:laneSize:laneSize]
	return lane{
		requested: word(m, laneRequested),
		sleeping:  word(m, laneSleeping),
		cpu:       word(m, laneCPU),
		answered:  word(m, laneAnswered),
		request:   m[laneRequest:laneAnswer],
		answer:    m[laneAnswer:],
	}
}

// put writes a message and its length.
func put(slot, message []byte) {
	binary.LittleEndian.PutUint32(slot, uint32(len(message)))
	copy(slot[4:], message)
}

// take copies a message into buf. A length that cannot be is that of no message.
func take(slot, buf []byte) []byte {
	n := int(binary.LittleEndian.Uint32(slot))
	if n < 0 || n > len(slot)-4 || n > len(buf) {
		return nil
	}
	return buf[:copy(buf[:n], slot[4:])]
}
