package calls

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// closeWait bounds the wait for calls that run when a server is closed.
const closeWait = time.Second

// State says how far a call had come when it was cancelled.
type State int

// The states.
const (
	NeverBegan  State = iota + 1 // it has not begun, and never will
	Interrupted                  // an exception was raised in it
	Finished                     // it was over before
)

// ErrCancelled is what a request gets that was cancelled before its function began.
func ErrCancelled() error {
	return &core.Error{Op: "call", Kind: core.ErrUnavailable, Err: errors.New("the call was cancelled before it began")}
}

// Callee is the program whose functions are called. All methods are safe for concurrent use.
type Callee interface {
	// Worker makes what answers the requests of one worker. It is called on the goroutine that answers them, which
	// is locked to its OS thread.
	Worker() Worker
	// Adopt maps memory that the host hands over. The files stay the caller's.
	Adopt(segment uint32, files []*os.File, a Adoption) error
	// Forget unmaps a segment as soon as no object in the program uses it.
	Forget(segment uint32)
	// Outside gives the bytes of a message that is too long for a mailbox, which lie in the host's memory. They are
	// private memory.
	Outside(a *Argument) ([]byte, error)
	// Put leases memory with the bytes of an answer that is too long for a mailbox.
	Put(answer []byte) (contract.Lease, error)
	// Release gives leases back.
	Release(ids ...contract.LeaseID)
	// Close ends what waits for the host.
	Close()
}

// Adoption says what memory is that a host hands over.
type Adoption struct {
	Size     int64 // bytes
	Writable bool
	// Handle is nil for host memory, which is one file. On a GPU it is a contract.CUDAVMM, each of whose chunks is a file, as the driver
	// exports it, or a contract.CUDAIPC, which needs none.
	Handle contract.Handle
}

// MaxChunks is how many chunks memory on a GPU may have that is handed over.
const MaxChunks = 64

// Worker answers requests, one at a time.
type Worker interface {
	// Answer releases the leases that r has ended, so that a function finds the memory free, and does what r asks for. What r holds is
	// valid during the call only. If the program fails, a says so.
	Answer(r *Request, a *Answer) error
	// Cancel is called from another goroutine while Answer runs. It raises an exception in the function that
	// Answer runs, if it has begun.
	Cancel() State
}

// Server answers the calls of one host.
type Server struct {
	callee  Callee
	codec   Codec
	memory  Memory
	spin    time.Duration
	file    *os.File
	mapping *shm.Mapping

	mu      sync.Mutex
	closed  bool
	workers []*server
}

// server is one worker with what its mailbox needs.
type server struct {
	*Server
	mailbox *handoff.MailboxServer

	mu        sync.Mutex
	worker    Worker
	running   uint64 // number of the call that is being answered, or 0
	last      uint64 // of the last that has begun to be answered
	cancelled uint64 // of a call that is not to begin

	// Of the goroutine that answers.
	request Request
	answer  Answer
}

// NewServer makes memory for both sides. Workers serve calls from Start until Close.
func NewServer(callee Callee, codec Codec, s Settings) (*Server, error) {
	out := &Server{
		callee: callee, codec: codec, spin: s.Spin,
		memory: Memory{Segment: Segment, Size: Size(s.Mailboxes()), Mailboxes: s.Mailboxes()},
	}
	if err := out.memory.check(); err != nil {
		return nil, err
	}
	var err error
	if out.file, err = shm.Create("ndbridge-calls", out.memory.Size); err != nil {
		return nil, err
	}
	if out.mapping, err = shm.Map(out.file, out.memory.Size, true); err != nil {
		return nil, errors.Join(err, shm.Close(out.file))
	}
	return out, nil
}

// Memory describes the memory to the host.
func (s *Server) Memory() Memory { return s.memory }

// Open gives a descriptor of the memory, for reading and writing, which the caller owns; nil if the segment is another
// one.
func (s *Server) Open(id contract.SegmentID) (*os.File, error) {
	if id != Segment {
		return nil, nil //nolint:nilnil // see above
	}
	return shm.ReadWrite(s.file)
}

// Start sees to it that the first n workers serve.
func (s *Server) Start(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n > s.memory.Mailboxes {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: fmt.Errorf("%d workers of %d", n, s.memory.Mailboxes)}
	}
	if s.closed {
		return &core.Error{Op: "call", Kind: core.ErrUnavailable, Err: errors.New("no more calls are served")}
	}
	for len(s.workers) < n {
		w := &server{Server: s}
		var err error
		if w.mailbox, err = handoff.NewMailboxServer(mailbox(s.mapping.Bytes(), len(s.workers)), 1, s.spin, w.handle); err != nil {
			return err
		}
		w.mailbox.AtEnd(w.atEnd)
		s.workers = append(s.workers, w)
	}
	return nil
}

// Adopt hands a segment of the host's to the program.
func (s *Server) Adopt(segment uint32, files []*os.File, a Adoption) error {
	if segment >= MaxSegments {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: fmt.Errorf("segment %d", segment)}
	}
	return s.callee.Adopt(segment, files, a)
}

// Forget takes a segment back.
func (s *Server) Forget(segment uint32) { s.callee.Forget(segment) }

// Cancel cancels the call of that number, which was given to that worker.
func (s *Server) Cancel(worker int, number uint64) (State, error) {
	s.mu.Lock()
	if worker < 0 || worker >= len(s.workers) || number == 0 {
		s.mu.Unlock()
		return 0, &core.Error{Op: "cancel", Kind: core.ErrProtocol, Err: fmt.Errorf("call %d of worker %d", number, worker)}
	}
	w := s.workers[worker]
	s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.running == number:
		return w.worker.Cancel(), nil
	case number <= w.last:
		return Finished, nil
	default:
		w.cancelled = number
		return NeverBegan, nil
	}
}

// lingering are services that have ended, whose memory is still mapped: objects of the program count in it.
var lingering struct { //nolint:gochecknoglobals // they have no owner any more
	sync.Mutex
	servers []*Server
}

// unmap unmaps the memory of s, and of other services before it, if nothing counts in it any more. Those in which something
// does wait for the next call.
func (s *Server) unmap() error {
	lingering.Lock()
	defer lingering.Unlock()
	all := lingering.servers
	lingering.servers = nil
	var errs []error
	for _, s := range append(all, s) {
		if s.counted() {
			lingering.servers = append(lingering.servers, s)
			continue
		}
		errs = append(errs, s.mapping.Close())
	}
	return errors.Join(errs...)
}

// Close ends the service. The memory stays mapped for as long as objects of the program outlive the service, which still count in
// it, and until another service ends then; or to the end of the process, if a function does not end. Close is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	mailboxes := make([]*handoff.MailboxServer, 0, len(s.workers))
	for _, w := range s.workers {
		mailboxes = append(mailboxes, w.mailbox)
	}
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.callee.Close()
	var err error
	if handoff.CloseAll(closeWait, mailboxes...) {
		err = s.unmap()
	}
	return errors.Join(err, shm.Close(s.file))
}

// counted reports whether objects of the program use memory of the host's.
func (s *Server) counted() bool {
	for i := range uint32(MaxSegments) {
		if held(s.mapping.Bytes(), i).Load() != 0 {
			return true
		}
	}
	return false
}

// atEnd is called on the goroutine that answers, after the last request.
func (w *server) atEnd() {
	w.mu.Lock()
	worker := w.worker
	w.mu.Unlock()
	if e, ok := worker.(handoff.Ender); ok {
		e.End()
	}
}

// handle answers one request. It is a handoff.Handler.
func (w *server) handle(request, answer []byte) []byte {
	a := &w.answer
	*a = Answer{Leases: a.Leases[:0]}
	if err := w.do(request, a); err != nil {
		w.release(a)
		*a = Answer{Kind: Failed, Values: w.codec.AppendError(nil, err)}
	}
	out, err := a.Append(answer[:0], w.codec)
	early := err == nil && a.Rest != nil && len(out) <= handoff.MaxAnswer
	if early {
		w.box().Early(out)
	}
	if a.Rest != nil {
		if failed := a.Rest(); failed != nil {
			return w.givenUp(answer, a, early, failed)
		}
	}
	if early {
		return nil // it holds
	}
	if err != nil {
		w.release(a)
		return w.failed(answer, err)
	}
	if len(out) <= handoff.MaxAnswer {
		return out
	}
	lease, err := w.callee.Put(out)
	if err != nil {
		w.release(a)
		return w.failed(answer, err)
	}
	// The leases are in the memory that this lease is on: the host gives all back, or none.
	short := Answer{Kind: outside, Leases: []contract.Lease{lease}}
	if out, err = short.Append(answer[:0], w.codec); err != nil {
		w.release(a)
		w.callee.Release(lease.ID)
		return w.failed(answer, err)
	}
	return out
}

// givenUp is the answer in the place of a, which does not hold. If the host was shown that, it has the leases, and gives them back when it
// has closed what it opened.
func (w *server) givenUp(answer []byte, a *Answer, shown bool, err error) []byte {
	if !shown {
		w.release(a)
	}
	*a = Answer{Kind: Failed, Leases: a.Leases, Values: w.codec.AppendError(nil, err)}
	out, appended := a.Append(answer[:0], w.codec)
	if appended == nil && len(out) <= handoff.MaxAnswer {
		return out
	}
	w.release(a)
	return w.failed(answer, err)
}

// box is the worker's mailbox.
func (w *server) box() *handoff.MailboxServer {
	w.Server.mu.Lock() // the first request may come before Start has it
	defer w.Server.mu.Unlock()
	return w.mailbox
}

func (w *server) failed(answer []byte, err error) []byte {
	a := Answer{Kind: Failed, Values: w.codec.AppendError(nil, err)}
	out, _ := a.Append(answer[:0], w.codec) // it has no leases, which alone can fail
	return out
}

func (w *server) release(a *Answer) {
	for i := range a.Leases {
		w.callee.Release(a.Leases[i].ID)
	}
	a.Leases = a.Leases[:0]
}

// do answers a request, unless it was cancelled before.
func (w *server) do(request []byte, a *Answer) error {
	r := &w.request
	err := r.Parse(request, w.codec)
	if err == nil && r.Flags&flagOutside != 0 {
		err = w.outside(r)
	}
	if err != nil {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	if !w.begin(r.Number) {
		w.callee.Release(r.Ended...)
		return ErrCancelled()
	}
	defer w.end()
	for i := range r.Arrays {
		r.Arrays[i].held = held(w.mapping.Bytes(), r.Arrays[i].Word)
	}
	return w.worker.Answer(r, a)
}

// outside reads the request that goes on in the host's memory.
func (w *server) outside(r *Request) error {
	if len(r.Arrays) != 1 {
		return fmt.Errorf("a request that goes on in %d arrays", len(r.Arrays))
	}
	number := r.Number
	body, err := w.callee.Outside(&r.Arrays[0])
	if err != nil {
		return err
	}
	if err := r.Parse(body, w.codec); err != nil {
		return err
	}
	if r.Number != number || r.Flags&flagOutside != 0 {
		return errors.New("a request that goes on in another")
	}
	return nil
}

func (w *server) begin(number uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.worker == nil {
		w.worker = w.callee.Worker()
	}
	w.last = number
	if number == w.cancelled {
		return false
	}
	w.running = number
	return true
}

func (w *server) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = 0
}
