package handoff

import (
	"bytes"
	"context"

	"github.com/ndbridge/ndbridge/core"
)

// maxSources bounds the names that a server keeps by their numbers.
const maxSources = 1 << 16

// Leaser is the part of core.Producer that goes through the ring.
type Leaser interface {
	Lease(ctx context.Context, name string, req core.Request) (core.Lease, error)
	Release(ctx context.Context, ids ...core.LeaseID) error
}

// Preparer is a [Leaser] that has a short way to names that are asked for again and again.
type Preparer interface {
	Leaser
	// Prepare makes ready for a name. All calls, and all those of what it gives, come from the goroutine
	// that answers, which is locked to its OS thread.
	Prepare(name string) Prepared
}

// Prepared is a name that is asked for again and again.
type Prepared interface {
	// Lease grants a lease if that takes no more than a moment, in which others wait. After any error the
	// host asks again by gRPC.
	Lease(ctx context.Context, req core.Request) (core.Lease, error)
	// Again grants another lease on what the last call of Lease has granted, if that call would now give
	// the same but for the lease's ID, and its fence, if that is not nil.
	Again() (core.LeaseID, core.Fence, bool)
	// Rest is called of the name that was asked for last: after each request, and when nothing was asked for a
	// while. While it gives true, something is kept for the next request, whatever that asks for, and Rest is
	// called again soon.
	Rest() bool
}

// Plain is a name of a producer that cannot prepare it: each lease is a call of Lease.
func Plain(producer Leaser, name string) Prepared { return plain{producer, name} }

type plain struct {
	producer Leaser
	name     string
}

func (p plain) Lease(ctx context.Context, req core.Request) (core.Lease, error) {
	return p.producer.Lease(ctx, p.name, req)
}

func (plain) Again() (core.LeaseID, core.Fence, bool) { return 0, nil, false }

func (plain) Rest() bool { return false }

// source is a name that the host has asked for.
type source struct {
	Prepared
	name string

	// What was asked for last, and the answer; stands says whether it may be given again.
	req    core.Request
	last   []byte
	stands bool
}

// again answers as the last time, if the same is asked and the answer would be the same, and gives the
// length of the answer or 0. A host that knows the description is not told it again.
func (s *source) again(r *request, answer []byte) int {
	if !s.stands || s.req != r.req {
		return 0
	}
	id, fence, ok := s.Again()
	if !ok {
		return 0
	}
	last := s.last
	known := r.known != 0 && r.known == numberOf(last)
	if known {
		last = last[:answerDescription]
	}
	answer = answer[:copy(answer, last)]
	if known {
		answer[answerKind] = answerAgain
	}
	putLeaseID(answer, id)
	if fence != nil {
		putFence(answer, fence)
	}
	return len(answer)
}

// sources are the names that the server keeps.
type sources struct {
	number   uint32 // of the last description
	prepare  func(name string) Prepared
	numbered []*source // nil: not said yet
	named    map[string]*source
}

func newSources(producer Leaser) sources {
	s := sources{
		prepare: func(name string) Prepared { return Plain(producer, name) },
		named:   make(map[string]*source),
	}
	if p, ok := producer.(Preparer); ok {
		s.prepare = p.Prepare
	}
	return s
}

// find gives what a request is about, or nil if it has a number that means nothing.
func (s *sources) find(r *request) *source {
	i := int(r.source)
	if i == 0 || i >= maxSources {
		return s.byName(r.name)
	}
	if i < len(s.numbered) {
		if known := s.numbered[i]; known != nil && (len(r.name) == 0 || string(r.name) == known.name) {
			return known
		}
	}
	if len(r.name) == 0 {
		return nil
	}
	for i >= len(s.numbered) {
		s.numbered = append(s.numbered, nil)
	}
	s.numbered[i] = s.make(r.name)
	return s.numbered[i]
}

// remember keeps the answer to a request for a source, and numbers its description.
func (s *sources) remember(of *source, req core.Request, answer []byte) {
	if of.req == req && len(of.last) > 0 && bytes.Equal(of.last[answerDescription:], answer[answerDescription:]) {
		putNumber(answer, numberOf(of.last))
	} else {
		s.number = max(s.number+1, 1) // 0 is none
		putNumber(answer, s.number)
	}
	of.req, of.last, of.stands = req, append(of.last[:0], answer...), true
}

// byName gives the source of a name without a number, and keeps the first of those as the host does.
func (s *sources) byName(name []byte) *source {
	if len(name) == 0 {
		return nil
	}
	known := s.named[string(name)]
	if known == nil {
		known = s.make(name)
		if len(s.named) < maxNamed {
			s.named[known.name] = known
		}
	}
	return known
}

func (s *sources) make(name []byte) *source {
	text := string(name)
	return &source{Prepared: s.prepare(text), name: text}
}
