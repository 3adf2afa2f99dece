package handoff

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// closeWait bounds the wait for a request that is being answered when a server is closed.
const closeWait = time.Second

// Producer answers the requests of a host. All calls come from the goroutine of the mailbox, which is locked to its OS
// thread.
type Producer interface {
	// Leases grants a lease for each name, without waiting for a name that does not exist yet, if that takes
	// no longer than a moment, in which others wait. It appends a result for each to results: [Changed] with
	// the lease, or [Ask].
	Leases(ctx context.Context, names []string, req contract.Request, results []Look) []Look
	// Refreshes looks at the names of standing leases again, as contract.Refresher does, under the same limits,
	// and appends a result for each to results. If only is true it copies nothing and grants nothing:
	// [Changed] has no lease then.
	Refreshes(ctx context.Context, ids []contract.LeaseID, only bool, results []Look) []Look
}

// Release gives leases back, as contract.Producer does.
type Release func(ctx context.Context, ids ...contract.LeaseID) error

// Prompt is a contract.Producer that answers the requests of a mailbox itself.
type Prompt interface {
	// Mailbox gives what answers those of one mailbox.
	Mailbox() Producer
}

// Offerer is a [Producer] that offers leases in a table.
type Offerer interface {
	// Offers hands the table over, when the session is opened, and nil before the table's memory goes. The texts
	// of descriptions are leases as the codec writes them, whose IDs say nothing.
	Offers(w *offers.Writer, c Codec)
}

// Ender is a [Producer], or what answers calls, that wants to know when its goroutine ends, which is locked to its OS thread.
type Ender interface {
	// End is called on that goroutine, after the last request.
	End()
}

// Server answers the requests of one host.
type Server struct {
	producer Producer
	release  Release
	offerer  Offerer // nil: nothing is offered
	codec    Codec
	memory   Memory
	file     *os.File
	mapping  *shm.Mapping
	mailbox  *MailboxServer

	//nolint:containedctx // the server's own lifetime
	ctx context.Context
	end context.CancelFunc

	// Of the goroutine that answers.
	request request
	results []Look
	answer  writer
}

// NewServer makes memory for both sides, and serves the producer's leases through it until Close.
func NewServer(producer Producer, release Release, codec Codec, s Settings) (*Server, error) {
	out := &Server{producer: producer, release: release, codec: codec, memory: Memory{Segment: Segment, Slots: s.Slots}}
	out.offerer, out.memory.Offers = producer.(Offerer)
	out.memory.Size = out.memory.wants()
	var err error
	if out.file, err = shm.Create("ndbridge-handoff", out.memory.Size); err != nil {
		return nil, err
	}
	if err := out.begin(s); err != nil {
		return nil, errors.Join(err, out.unmap())
	}
	return out, nil
}

func (s *Server) begin(settings Settings) (err error) {
	if s.mapping, err = shm.Map(s.file, s.memory.Size, true); err != nil {
		return err
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	mem := s.mapping.Bytes()
	s.mailbox, err = NewMailboxServer(mem[s.memory.offset():], settings.Slots, settings.Spin, s.handle)
	if err != nil {
		return err
	}
	if e, ok := s.producer.(Ender); ok {
		s.mailbox.AtEnd(e.End)
	}
	if s.offerer == nil {
		return nil
	}
	w, err := offers.NewWriter(mem)
	if err == nil {
		s.offerer.Offers(w, s.codec)
	}
	return err
}

// Memory describes the memory to the host.
func (s *Server) Memory() Memory { return s.memory }

// Open gives a descriptor of the memory, for reading and writing, which the caller owns; nil if the segment
// is another one.
func (s *Server) Open(id contract.SegmentID) (*os.File, error) {
	if id != Segment {
		return nil, nil //nolint:nilnil // see above
	}
	return shm.ReadWrite(s.file)
}

// Close ends the service. A producer that does not obey its context keeps the memory: the process is at
// its end then.
func (s *Server) Close() error {
	s.end()
	if s.offerer != nil {
		s.offerer.Offers(nil, nil)
	}
	if CloseAll(closeWait, s.mailbox) {
		return s.unmap()
	}
	return shm.Close(s.file)
}

func (s *Server) unmap() (err error) {
	if s.mapping != nil {
		err = s.mapping.Close()
	}
	return errors.Join(err, shm.Close(s.file))
}

// handle answers one request. Whatever it cannot do is for gRPC, where errors have texts.
func (s *Server) handle(request, answer []byte) []byte {
	r := &s.request
	if err := r.parse(request); err != nil {
		return append(answer, answerAsk, 0, 0, 0, 0, 0, 0, 0)
	}
	s.results = s.results[:0]
	defer func() { clear(s.results) }() // nothing of a lease is kept
	switch r.op {
	case opRelease:
		// An error says that memory was not given back in order, not that a lease stands; a host that gives
		// leases back in passing does not wait for that.
		_ = s.release(s.ctx, r.ids...)
		return append(answer, answerDone, 0, 0, 0, 0, 0, 0, 0)
	case opRefresh:
		s.results = s.producer.Refreshes(s.ctx, r.ids, r.look, s.results)
	default:
		s.results = s.leases(r)
	}
	return s.write(answer)
}

// leases grants what was asked for. The leases of several names are of one moment, for which their host waits; who asks for one name asks again by gRPC.
func (s *Server) leases(r *request) []Look {
	ctx := s.ctx
	if len(r.names) == 1 {
		short, cancel := context.WithTimeout(ctx, serveLimit)
		defer cancel()
		ctx = short
	}
	return s.producer.Leases(ctx, r.names, r.req, s.results)
}

// write writes the results. A lease that the answer has no room for is given back, and asked for by gRPC.
func (s *Server) write(answer []byte) []byte {
	w := &s.answer
	w.begin(answer, len(s.results))
	for i := range s.results {
		switch l := &s.results[i]; {
		case l.Lease != nil:
			if !w.lease(i, s.codec, l.Lease) {
				_ = s.release(s.ctx, l.Lease.ID) // see handle
			}
		case l.Status == Fenced:
			w.fence(i, l.Fence)
		default:
			w.status(i, l.Status)
		}
	}
	return w.b
}
