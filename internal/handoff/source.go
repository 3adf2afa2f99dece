package handoff

import (
	"bytes"
	"fmt"
	"sync"
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

	offer  atomic.Pointer[offer] // that was found on the board
	absent atomic.Uint64         // the board's changes, and 1, at which the name was not on it

	mu   sync.Mutex
	last []byte     // the last description
	made core.Lease // what it says
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
// to enter a program that is busy or to copy a large array, it is not asked for again at once.
func (s *Source) asked(now, took time.Duration) {
	const share = 20 // of the time that views take by gRPC, the ring may cost about this part
	if took > serveLimit/2 {
		s.slow.Store(int64(now + share*took))
	}
}

// decode reads an answer with a lease from a side that is not trusted, and checks it.
func (s *Source) decode(answer []byte, req core.Request) (core.Lease, error) {
	fence, err := fenceOf(answer)
	if err != nil {
		return core.Lease{}, err
	}
	lease, err := s.describe(answer[answerDescription:])
	if err != nil {
		return core.Lease{}, err
	}
	lease.ID, lease.Fence = leaseIDOf(answer), fence
	if OnBoard(lease.ID) {
		return core.Lease{}, fmt.Errorf("lease %#x, which is a number of the host's own", uint64(lease.ID))
	}
	if err := lease.Check(req); err != nil {
		return core.Lease{}, err
	}
	return lease, nil
}

// describe gives what a description says: the same values again if it is the same.
func (s *Source) describe(description []byte) (core.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && bytes.Equal(s.last, description) {
		return s.made, nil
	}
	lease, err := describe(description)
	if err != nil {
		return core.Lease{}, err
	}
	s.last, s.made = append(s.last[:0], description...), lease
	return lease, nil
}
