package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Handler answers one request: it writes the answer, which has room for [MaxAnswer] bytes, and gives
// its length. Both slices are private memory, and valid during the call only.
type Handler func(request, answer []byte) int

// Service is what a server does. All calls come from one goroutine, which is locked to its OS thread.
type Service struct {
	Handle Handler
	// After is called when an answer is on its way, for what only the next answer has to wait for. It may be
	// nil.
	After func()
	// Idle is called when nothing was asked for as long as the spin, and when the service ends. While it gives
	// true, the server goes on looking instead of sleeping, and calls it again soon. It may be nil.
	Idle func() bool
}

// Server is the side that answers.
type Server struct {
	bell, asleep, cpu, closed *atomic.Uint32

	lanes   []lane
	last    int // that had something to ask
	service Service
	spin    time.Duration

	close   sync.Once
	stopped chan struct{}
}

// NewServer makes mem, which is zero, page-aligned and [Size] bytes long, the memory of a ring and
// serves it: from one goroutine, with a thread of its own, one request at a time. After a request it looks
// for the next for as long as spin before it sleeps. mem must stay mapped until Close has returned.
func NewServer(mem []byte, lanes int, spin time.Duration, service Service) (*Server, error) {
	if err := format(mem, lanes); err != nil {
		return nil, err
	}
	s := &Server{
		bell: word(mem, offBell), asleep: word(mem, offAsleep), cpu: word(mem, offCPU), closed: word(mem, offClosed),
		service: service, spin: spin, stopped: make(chan struct{}),
	}
	for i := range lanes {
		s.lanes = append(s.lanes, laneAt(mem, i))
	}
	go s.serve()
	return s, nil
}

// Close ends the service, when the request that is being answered is. Requests that come later are
// never answered; their callers are told.
func (s *Server) Close() {
	s.close.Do(func() {
		s.closed.Store(1)
		s.bell.Add(1)
		wake(s.bell)
		<-s.stopped
		for _, l := range s.lanes {
			wake(l.answered)
		}
	})
}

func (s *Server) serve() {
	runtime.LockOSThread() // for handlers to whom it matters; the thread ends with the goroutine
	defer close(s.stopped)
	var (
		served  = make([]uint32, len(s.lanes))
		request = make([]byte, MaxRequest)
		answer  = make([]byte, MaxAnswer)
		pause   = spin{budget: s.spin, mine: s.cpu, peers: s.lanes[0].cpu, moves: true}
	)
	for s.closed.Load() == 0 {
		if s.round(served, request, answer) {
			pause.restart(s.lanes[s.last].cpu)
			continue
		}
		if pause.goOn() || s.busy() {
			continue
		}
		bell := s.bell.Load()
		s.asleep.Store(1)
		// A caller either sees that this sleeps, or has written its number before this looks.
		if !s.pending(served) && s.closed.Load() == 0 {
			wait(s.bell, bell, 0)
		}
		s.asleep.Store(0)
		pause.slept(s.lanes[s.last].cpu)
	}
	for s.busy() {
		runtime.Gosched()
	}
}

// busy reports whether the service has a reason not to sleep.
func (s *Server) busy() bool { return s.service.Idle != nil && s.service.Idle() }

// pending reports whether there is a request that was not answered.
func (s *Server) pending(served []uint32) bool {
	for i := range s.lanes {
		if s.lanes[i].requested.Load() != served[i] {
			return true
		}
	}
	return false
}

// round answers what has been asked since the last one.
func (s *Server) round(served []uint32, request, answer []byte) (asked bool) {
	for i := range s.lanes {
		l := &s.lanes[i]
		number := l.requested.Load()
		if number == served[i] {
			continue
		}
		asked, served[i], s.last = true, number, i
		n := s.service.Handle(take(l.request, request), answer)
		put(l.answer, answer[:n])
		l.answered.Store(number)
		if l.sleeping.Load() != 0 {
			wake(l.answered)
		}
		if s.service.After != nil {
			s.service.After()
		}
	}
	return asked
}
