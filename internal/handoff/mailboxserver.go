package handoff

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// Handler answers one request: it appends the answer to the empty slice answer, which has room for
// [MaxAnswer] bytes, and gives what results. Both slices are private memory, and valid during the call
// only. All calls come from one goroutine, which is locked to its OS thread. An answer that is too long
// becomes an empty one.
type Handler func(request, answer []byte) []byte

// MailboxServer is the side that answers.
type MailboxServer struct {
	bell, asleep, cpu, closed *atomic.Uint32

	slots  []slot
	served []uint32 // the number of the last request that was answered, for each slot
	last   int      // slot that asked last
	early  bool     // its caller is shown the answer already
	handle Handler
	spin   time.Duration

	close   sync.Once
	atEnd   atomic.Pointer[func()]
	stopped chan struct{}
}

// NewMailboxServer makes mem, which is zero, page-aligned and [MailboxSize] bytes long, the memory of a mailbox and
// serves it: from one goroutine, with a thread of its own, one request at a time. After a request it looks
// for the next for as long as spin before it sleeps. mem must stay mapped until Close has returned.
func NewMailboxServer(mem []byte, slots int, spin time.Duration, handle Handler) (*MailboxServer, error) {
	if err := format(mem, slots); err != nil {
		return nil, err
	}
	s := &MailboxServer{
		bell: Word(mem, offBell), asleep: Word(mem, offAsleep), cpu: Word(mem, offCPU), closed: Word(mem, offClosed),
		served: make([]uint32, slots), handle: handle, spin: spin, stopped: make(chan struct{}),
	}
	for i := range slots {
		s.slots = append(s.slots, slotAt(mem, i))
	}
	go s.serve()
	return s, nil
}

// AtEnd makes f be called on the goroutine that answers, when that ends. It is called before Close, and once.
func (s *MailboxServer) AtEnd(f func()) { s.atEnd.Store(&f) }

// Close ends the service, when the request that is being answered is. Requests that come later are
// never answered; their callers are told.
func (s *MailboxServer) Close() {
	s.close.Do(func() {
		s.closed.Swap(1)
		s.bell.Add(1)
		shm.Wake(s.bell, 1)
		<-s.stopped
		for _, l := range s.slots {
			shm.Wake(l.answered, 1)
		}
	})
}

// Early shows the caller of the request that is being answered what the answer is going to be, so that the caller prepares for it
// meanwhile. It is called in the handler, once. If the handler then gives an empty answer, this one holds; any other one takes its place.
func (s *MailboxServer) Early(answer []byte) {
	if len(answer) > MaxAnswer {
		return
	}
	l := &s.slots[s.last]
	put(l.answer, answer)
	s.early = true
	l.early.Swap(s.served[s.last])
	l.wake()
}

// CloseAll closes servers, and reports whether all have stopped within limit. Those that have not still use their memory.
func CloseAll(limit time.Duration, servers ...*MailboxServer) bool {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for _, s := range servers {
			s.Close()
		}
	}()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-stopped:
		return true
	case <-timeout.C:
		return false
	}
}

func (s *MailboxServer) serve() {
	runtime.LockOSThread() // for handlers to whom it matters; the thread ends with the goroutine
	defer close(s.stopped)
	defer func() {
		if f := s.atEnd.Load(); f != nil {
			(*f)()
		}
	}()
	request, answer := make([]byte, 0, MaxRequest), make([]byte, 0, MaxAnswer)
	pause := spin{budget: s.spin, mine: s.cpu, peers: s.slots[0].cpu}
	for s.closed.Load() == 0 {
		if s.round(request, answer) {
			pause.restart(s.slots[s.last].cpu)
			continue
		}
		if pause.goOn() {
			continue
		}
		bell := s.bell.Load()
		s.asleep.Swap(1)
		// A caller either sees that this sleeps, or has written its number before this looks.
		if !s.pending() && s.closed.Load() == 0 {
			shm.Sleep(s.bell, bell, 0)
		}
		s.asleep.Store(0)
		pause.restart(s.slots[s.last].cpu)
	}
}

// pending reports whether there is a request that was not answered.
func (s *MailboxServer) pending() bool {
	for i := range s.slots {
		if s.slots[i].requested.Load() != s.served[i] {
			return true
		}
	}
	return false
}

// round answers what has been asked since the last one.
func (s *MailboxServer) round(request, answer []byte) (asked bool) {
	for i := range s.slots {
		l := &s.slots[i]
		number := l.requested.Load()
		if number == s.served[i] {
			continue
		}
		asked, s.served[i], s.last = true, number, i
		out := s.handle(take(l.request, request), answer)
		if shown := s.early; !shown || len(out) > 0 { // else what was shown holds
			if shown {
				l.early.Store(0) // before the caller could read half of one answer, and half of the other
			}
			if len(out) > MaxAnswer {
				out = nil
			}
			put(l.answer, out)
		}
		s.early = false
		l.answered.Swap(number)
		l.wake()
	}
	return asked
}

// wake wakes the caller, if it sleeps.
func (l *slot) wake() {
	if l.sleeping.Load() != 0 {
		shm.Wake(l.answered, 1)
	}
}
