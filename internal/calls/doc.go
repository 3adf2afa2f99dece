// Package calls carries calls of a program's functions through shared memory, so that one costs microseconds, and as
// many run at once as the host wants. docs/PROTOCOL.md has the layout and the messages byte by byte.
//
// A call runs on a worker, which is a thread of the program's process together with a mailbox of one slot (package
// handoff) in the memory that both sides share. Whoever has a worker has its mailbox alone, so a call that takes long
// holds up nobody but those who wait for a worker. [Server] is the program's side and [Client] the host's.
//
// The program calls functions of the host's on the same way: the host's requests ask for what the program calls, and bring it the results.
// A worker that carries them is a lane. Between the two the host may make calls on the lane, which run on the very thread that waits for
// its result.
//
// Plain values travel in the form of package values. Arrays travel beside them: the host's own as layouts of segments
// whose descriptors the program was given, and the program's as leases.
//
// Neither side trusts the other. What comes from it is copied into private memory once and checked there.
package calls

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

const (
	// Segment is the ID of the memory. Producers count their segments from 1.
	Segment contract.SegmentID = 1<<63 | 1

	// MaxWorkers is how many calls of a host's may run at once.
	MaxWorkers = 64

	// MaxLanes is how many calls of a program's may be with the host at once. One that is made within a call that the host makes within
	// such a call may take any; the others leave half of them.
	MaxLanes = 64

	// MaxSegments is how many segments of the host's a program can have at once. They are numbered from 0.
	MaxSegments = 4096
)

// Settings is what the host wishes. The zero value is no calls.
type Settings struct {
	Workers int           // calls at once; 0: none
	Lanes   int           // calls of the program's at once
	Spin    time.Duration // for how long either side of a worker looks before it sleeps
}

// Mailboxes is how many workers and lanes there may be.
func (s Settings) Mailboxes() int { return s.Workers + s.Lanes }

// Memory is what the program has made: the zero value is nothing.
type Memory struct {
	Segment   contract.SegmentID
	Size      int64
	Mailboxes int
}

// The memory begins with words that count the objects in the program that use memory of the host's: each segment has the word
// of its number, and memory that is lent to one call has one that no segment has. The workers' mailboxes follow.
const heldSize = 4 * MaxSegments

// Size is how many bytes the memory of that many mailboxes has.
func Size(mailboxes int) int64 { return heldSize + int64(mailboxes)*handoff.MailboxSize(1) }

// check says what is wrong with the description of a memory.
func (m Memory) check() error {
	if m.Mailboxes < 1 || m.Mailboxes > MaxWorkers+MaxLanes || m.Size != Size(m.Mailboxes) {
		return fmt.Errorf("%d workers in %d bytes", m.Mailboxes, m.Size)
	}
	return nil
}

// mailbox is the part of the memory that belongs to a worker's mailbox.
func mailbox(mem []byte, worker int) []byte {
	size := int(handoff.MailboxSize(1))
	return mem[heldSize+worker*size:][:size:size]
}

// held is the word of that number.
func held(mem []byte, word uint32) *atomic.Uint32 { return handoff.Word(mem, 4*int(word)) }

// Codec writes and reads what travels in a message as it does by gRPC.
type Codec interface {
	handoff.Codec
	// AppendLayout writes the layout of an array in the host's memory behind b.
	AppendLayout(b []byte, l core.Layout) ([]byte, error)
	// Layout reads one from a side that is not trusted.
	Layout(b []byte) (core.Layout, error)
	// AppendError writes an error behind b.
	AppendError(b []byte, err error) []byte
	// Error reads one from a side that is not trusted.
	Error(b []byte) error
}
