package handoff

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// Source is a name that is asked for again and again: it travels once, and its description is read
// again only when it has changed. All methods are safe for concurrent use.
type Source struct {
	name   []byte
	number uint32 // 0: the name travels with each request
	known  atomic.Bool

	mu   sync.Mutex
	last []byte     // the last description
	made core.Lease // what it says
}

// Source prepares a name. Beyond some tens of thousands they are no faster than [Client.Once].
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

// Once is a source that is used once.
func (c *Client) Once(name string) *Source { return &Source{name: []byte(name)} }

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
