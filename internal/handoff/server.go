package handoff

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// closeWait bounds the wait for a request that is being answered when a server is closed.
const closeWait = time.Second

// Server answers the requests of one host.
type Server struct {
	producer Leaser
	memory   region
	ring     *ring.Server
	lanes    int
	offers   offers

	//nolint:containedctx // the server's own lifetime
	ctx context.Context
	end context.CancelFunc

	// Of the goroutine that answers.
	request request
	later   []core.LeaseID // that are released after the answer; a part of the request
	sources sources
	asked   *source // for the last lease; nil: there was none
}

// NewServer makes a ring and serves the producer's leases through it until Close.
func NewServer(producer Leaser, s Settings) (*Server, error) {
	memory, err := create("ndbridge-ring", ring.Size(s.Lanes))
	if err != nil {
		return nil, err
	}
	out := &Server{producer: producer, memory: memory, lanes: s.Lanes, sources: newSources(producer)}
	out.ctx, out.end = context.WithCancel(context.Background())
	if out.ring, err = ring.NewServer(memory.mapping.Bytes(), s.Lanes, s.Spin, ring.Service{Handle: out.handle, After: out.after, Idle: out.idle}); err != nil {
		return nil, errors.Join(err, memory.close())
	}
	return out, nil
}

// Ring describes the ring to the host.
func (s *Server) Ring() Ring {
	return Ring{Segment: Segment, Size: s.memory.mapping.Size(), Lanes: s.lanes, Board: s.offers.board()}
}

// Open gives a descriptor of the memory of the ring or of the board, for reading and writing, which the
// caller owns; nil if the segment is neither.
func (s *Server) Open(id core.SegmentID) (*os.File, error) {
	switch {
	case id == Segment:
		return shm.ReadWrite(s.memory.file)
	case id == BoardSegment && s.offers.memory.file != nil:
		return shm.ReadWrite(s.offers.memory.file)
	default:
		return nil, nil //nolint:nilnil // see above
	}
}

// Close ends the service. A producer that does not obey its context keeps the memory: the process is at
// its end then.
func (s *Server) Close() error {
	s.end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.ring.Close()
	}()
	timeout := time.NewTimer(closeWait)
	defer timeout.Stop()
	select {
	case <-stopped:
		return errors.Join(s.offers.close(), s.memory.close())
	case <-timeout.C:
		return errors.Join(s.offers.close(), s.memory.file.Close())
	}
}

// handle answers one request. Whatever it cannot do is for gRPC, where errors have texts.
func (s *Server) handle(request, answer []byte) int {
	r := &s.request
	if err := r.parse(request); err != nil {
		return putAnswer(answer, answerAsk)
	}
	n := 0
	var source *source
	if r.op == opLease {
		// Before the releases, so that what is given back and wanted again stays as it is. Anything else
		// waits for them: their memory may be what it takes.
		if source = s.sources.find(r); source != nil {
			s.asked = source
			n = source.again(r, answer)
		}
	}
	if n > 0 {
		s.later = r.releases
		return n
	}
	s.release(r.releases)
	switch {
	case r.op == opRelease:
		return putAnswer(answer, answerDone)
	case source == nil:
		return putAnswer(answer, answerAsk)
	default:
		return s.lease(source, r.req, answer)
	}
}

// after is called when the answer is on its way.
func (s *Server) after() {
	s.release(s.later)
	s.later = nil
	s.idle() // or who asks again and again for nothing would have it kept
}

// idle reports whether something is kept for the next request.
func (s *Server) idle() bool { return s.asked != nil && s.asked.Rest() }

func (s *Server) release(ids []core.LeaseID) {
	if len(ids) > 0 {
		// An error says that memory was not given back in order, not that a lease stands; a host that
		// gives leases back in passing does not wait for that.
		_ = s.producer.Release(s.ctx, ids...)
	}
}

// lease leases a source as if for the first time.
func (s *Server) lease(source *source, asked core.Request, answer []byte) int {
	ctx, cancel := context.WithTimeout(s.ctx, serveLimit)
	defer cancel()
	source.stands = false
	req := asked
	req.NoWait = true
	lease, err := source.Lease(ctx, req)
	if err != nil {
		return putAnswer(answer, answerAsk)
	}
	b, ok := appendLease(answer[:0], &lease)
	if !ok {
		_ = s.producer.Release(s.ctx, lease.ID) // it is leased again by gRPC
		return putAnswer(answer, answerAsk)
	}
	s.sources.remember(source, asked, b)
	return len(b)
}

// putAnswer writes an answer without a lease.
func putAnswer(answer []byte, kind byte) int {
	clear(answer[:answerDescription])
	answer[answerKind] = kind
	return answerDescription
}
