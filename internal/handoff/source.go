package handoff

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// Source is a name that is asked for again and again: it travels once, and its description is read
// again only when it has changed. All methods are safe for concurrent use.
type Source struct {
	name   []byte
	number uint32 // 0: the name travels with each request
	known  atomic.Bool
	slow   atomic.Int64 // until when the ring is not asked, in nanoseconds since the client was made
	last   atomic.Pointer[described]

	offer  atomic.Pointer[offer] // that was found on the board
	absent atomic.Uint64         // the board's changes, and 1, at which the name was not on it
}

// described is what was last said about an array, and checked.
type described struct {
	description []byte
	number      uint32 // that the plugin knows it by, or 0
	lease       core.Lease

	// What the check depends on beside the description.
	req   core.Request
	ready bool // there is no fence to wait for
}

// Grant is a lease as it comes: what is its own, and what it has in common with the ones before it.
type Grant struct {
	ID    core.LeaseID
	Fence core.Fence
	Lease *core.Lease // the rest, which must not be written; its ID and its fence say nothing
}

// Whole is the lease, in one piece.
func (g Grant) Whole() core.Lease {
	lease := *g.Lease
	lease.ID, lease.Fence = g.ID, g.Fence
	return lease
}

// Source prepares a name. Beyond some tens of thousands they are no faster than [Client.Named].
func (c *Client) Source(name string) *Source {
	s := &Source{name: []byte(name)}
	for n := c.last.Load(); n+1 < maxSources; n = c.last.Load() {
		if c.last.CompareAndSwap(n, n+1) {
			s.number = n + 1
			break
		}
	}
	return s
}

// Named gives the source of a name that is not prepared: the same one again, for the first names.
func (c *Client) Named(name string) *Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.named[name]
	if s == nil {
		s = &Source{name: []byte(name)}
		if len(c.named) < maxNamed {
			c.named[name] = s
		}
	}
	return s
}

// asked remembers how long a request took that the ring had no answer to. What it cannot do now, such as
// to enter a program that is busy or to copy a large array, it is not asked for again at once. Times are
// counted from begin.
func (s *Source) asked(begin time.Time, took time.Duration) {
	const share = 20 // of the time that views take by gRPC, the ring may cost about this part
	if took > serveLimit/2 {
		s.slow.Store(int64(time.Since(begin) + share*took))
	}
}

// isSlow reports whether the ring is not to be asked now.
func (s *Source) isSlow(begin time.Time) bool {
	until := s.slow.Load()
	if until == 0 {
		return false // without a look at the clock
	}
	if time.Since(begin) < time.Duration(until) {
		return true
	}
	s.slow.CompareAndSwap(until, 0)
	return false
}

// decode reads an answer with a lease from a side that is not trusted, and checks it. The description that
// was last known when the request was made need not be in the answer, and is neither read nor checked again.
func (s *Source) decode(answer []byte, req core.Request, last *described) (Grant, error) {
	if id := leaseIDOf(answer); OnBoard(id) {
		return Grant{}, fmt.Errorf("lease %#x, which is a number of the host's own", uint64(id))
	}
	fence, err := fenceOf(answer)
	if err != nil {
		return Grant{}, err
	}
	_, ready := fence.(core.Ready)
	number, description := numberOf(answer), answer[answerDescription:]
	if answer[answerKind] == answerAgain {
		if last == nil || last.req != req || number == 0 || number != last.number || len(description) != 0 {
			return Grant{}, fmt.Errorf("an answer of %d bytes that has the description %d", len(answer), number)
		}
		description = last.description
	}
	if last == nil || last.req != req || last.ready != ready || last.number != number || !bytes.Equal(last.description, description) {
		lease, err := describe(description)
		if err != nil {
			return Grant{}, err
		}
		lease.Fence = fence
		if err := lease.Check(req); err != nil {
			return Grant{}, err
		}
		last = &described{bytes.Clone(description), number, lease, req, ready}
		s.last.Store(last)
	}
	return Grant{leaseIDOf(answer), fence, &last.lease}, nil
}
