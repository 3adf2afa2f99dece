// Package handoff asks for leases, and gives them back, through a ring in shared memory, so that a view
// costs no round trip over a socket. docs/PROTOCOL.md has the requests and answers byte by byte.
//
// It is a shortcut beside gRPC and has no errors of its own: whatever does not go through the ring in a
// few milliseconds (a name that is not there yet, an error with its text, a program that is busy, a
// description that is too long) is asked again by gRPC. [Server] is the producer's side and [Client]
// the host's; what the host takes from the ring is checked as completely as what comes by gRPC.
package handoff

import (
	"time"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// Segment is the ID of the ring's memory. Producers count their segments from 1.
	Segment core.SegmentID = 1 << 63

	// serveLimit bounds the work on one request, since others wait meanwhile. It is above the interval
	// in which Python hands over its lock (5 ms), of which producers may keep a quarter for themselves.
	serveLimit = 10 * time.Millisecond

	// callLimit is how long the host waits for the answer to one request.
	callLimit = 50 * time.Millisecond

	// maxNamed bounds the names that a host keeps which nobody has prepared.
	maxNamed = 256

	// sweepInterval is how often the host looks for answers that nobody waits for any more.
	sweepInterval = 5 * time.Millisecond
)

// Settings is what the host wishes. The zero value is no ring.
type Settings struct {
	Lanes int           // requests under way at once; 0: no ring
	Spin  time.Duration // for how long either side looks before it sleeps
}

// Ring is what the producer has made: the zero value is no ring.
type Ring struct {
	Segment core.SegmentID
	Size    int64
	Lanes   int
	Board   Board
}
