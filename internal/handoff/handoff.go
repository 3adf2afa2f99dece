// Package handoff asks for leases, looks at them again, and gives them back through a mailbox in shared memory, so
// that none of this costs a round trip over a socket. docs/PROTOCOL.md has the layout, the requests and the answers
// byte by byte.
//
// It is a shortcut beside gRPC and has no errors of its own: the host asks by gRPC for whatever does not go through the
// mailbox in a few milliseconds (a name that does not exist yet, an error with its text, a program that is busy, a
// large copy). [Server] is the producer's side and [Client] the host's. A lease travels as the same message as by gRPC,
// and the same code checks it: see [Codec]. The same memory holds a table of offers (package offers), if the producer
// has one.
//
// The mailbox below carries requests and answers without a system call while both sides are awake. Its memory is
// divided into slots. A caller has a slot to itself while its request is under way. It writes the request, then the
// request's number; the server answers in the same slot, then writes that number as the answer's. Each side looks for
// the other's number for a short time, its spin, and then sleeps on a futex until the other wakes it.
//
// Neither side trusts the other. Each copies what comes into private memory once and looks only at the copy. Whatever
// the other side writes, and whenever, the worst that happens is a wrong request or answer, which the reader checks.
package handoff

import (
	"context"
	"errors"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
)

const (
	// Segment is the ID of the memory. Producers count their segments from 1.
	Segment contract.SegmentID = 1 << 63

	// serveLimit bounds the work on one request, since others wait meanwhile. It is above the interval
	// in which Python hands over its lock (5 ms).
	serveLimit = 10 * time.Millisecond

	// callLimit is how long the host waits for the answer to one request.
	callLimit = 50 * time.Millisecond
)

// Settings is what the host wishes. The zero value is no mailbox.
type Settings struct {
	Slots int           // requests under way at once; 0: no mailbox
	Spin  time.Duration // for how long either side looks before it sleeps
}

// Memory is what the producer has made: the zero value is nothing.
type Memory struct {
	Segment contract.SegmentID
	Size    int64
	Slots   int
	Offers  bool // the memory begins with a table of offers
}

// offset is where the mailbox begins.
func (m Memory) offset() int64 {
	if m.Offers {
		return offers.Size
	}
	return 0
}

// wants is the size that such memory must have.
func (m Memory) wants() int64 { return m.offset() + MailboxSize(m.Slots) }

// Codec writes and reads leases as they travel.
type Codec interface {
	// Append writes a lease behind b.
	Append(b []byte, l *contract.Lease) ([]byte, error)
	// Lease reads a lease from a side that is not trusted, and proves that it answers the request.
	Lease(b []byte, req contract.Request) (contract.Lease, error)
	// ID reads the ID of a lease that is not wanted; 0 if there is none.
	ID(b []byte) contract.LeaseID
}

// Status says what became of a lease that was looked at again.
type Status byte

// The statuses.
const (
	Ask       Status = iota // the mailbox cannot tell: ask by gRPC
	Unchanged               // the lease is on what its name means; what was copied was copied again
	Changed                 // it is not: here is a new lease, unless this was only a look
	Fenced                  // as Unchanged, and here is the fence of now
)

// Look is the result of looking at one lease again.
type Look struct {
	Status Status
	Lease  *contract.Lease   // if Changed; nil if this was only a look
	Fence  contract.CUDAWord // if Fenced
}

// Elsewhere reports whether the error of a look says that a name leads no more to the array that was leased: to
// nothing, to what is no array, or to one that cannot be had as the view was asked for. It does not if nobody
// could look.
func Elsewhere(err error) bool {
	for _, other := range []error{core.ErrUnavailable, core.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil
}
