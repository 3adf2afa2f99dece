package imports

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Stream is a stream of the host that uses memory of programs. It knows which fences it waits for, and tells when its
// work on a memory is done. All methods are safe for concurrent use.
type Stream struct {
	Handle  driver.Stream
	primary *gpu.Primary

	broken atomic.Bool // its context is, so it ends no reads any more

	given atomic.Uint64 // grows when the stream is given work, and when memory that it used is closed

	mu     sync.Mutex // held while the driver is given work
	closed bool
	waits  []Wait // what its work waits for, as far as is known
	prune  int    // how many there may be before those that were reached are looked for
	behind int    // operations in the queue since a fence that was not reached
	reads  []read // that have begun in the call of Give
	marks  []mark // the first that will happen first
	events []driver.Event
	done   uint64 // of given
}

// mark is an event behind all that the stream was given until at.
type mark struct {
	at    uint64
	event driver.Event
}

// maxBehind is how many operations a stream takes behind a fence. The driver's queue holds some more. Where that is
// full, the driver waits, and lets no other call of the process in.
const maxBehind = 500

// NewStream makes a stream in a primary context, which it takes over. The caller closes it.
func NewStream(p *gpu.Primary) (*Stream, error) {
	s := &Stream{primary: p}
	err := p.Do(func() (err error) { s.Handle, err = driver.StreamCreate(); return err })
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return s, nil
}

// Device returns the stream's device.
func (s *Stream) Device() driver.Device { return s.primary.Device }

// Give calls f, which gives the stream work, with its context current. f may call await. The error wraps
// core.ErrUnavailable if too much work waits for programs.
func (s *Stream) Give(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errStreamClosed()
	}
	if !s.waiting() {
		s.behind = 0
	} else if s.behind >= maxBehind {
		return &core.Error{
			Kind: core.ErrUnavailable, Err: fmt.Errorf("%d operations on the stream wait for a program", s.behind),
			Remedy: "synchronize the stream, or wait for the view, before more work",
		}
	}
	s.behind++
	s.given.Add(1)
	return s.primary.Do(func() error {
		err := f()
		for _, r := range s.reads {
			err = errors.Join(err, r.endBy(s.Handle))
			s.behind++
		}
		s.reads = s.reads[:0]
		return err
	})
}

// begin counts a read of what the fence is for, once in each call of Give for all that has fences in the same page.
func (s *Stream) begin(f *fence) error {
	p := f.word.page
	if !f.word.onGPU() || slices.ContainsFunc(s.reads, func(r read) bool { return r.page == p }) {
		return nil
	}
	r, err := p.begin(s)
	if err == nil {
		s.reads = append(s.reads, r)
	}
	return err
}

// Await makes later work of the stream wait for a memory's fence, and lets the memory wait for the stream when it is
// closed. The program can wait for the work that the same call of Give gives to the stream. Await is called in Give.
func (s *Stream) Await(m *Memory) error {
	m.usedBy(s)
	f := m.now.Load()
	err := m.Usable()
	if err == nil && f != nil {
		err = s.begin(f)
	}
	if err != nil || f == nil || f.word.reached() {
		return err
	}
	w := Wait{m, f}
	covered := false
	for _, other := range s.waits {
		if other == w {
			return nil
		}
		covered = covered || other.fence.covers(f)
	}
	if !covered {
		if err := gpu.Streams.Await(w, func() error { return f.word.wait(s.Handle) }); err != nil {
			return err
		}
		s.behind++
	}
	if len(s.waits) >= s.prune {
		s.forget()
		s.prune = 2*len(s.waits) + 64
	}
	s.waits = append(s.waits, w)
	return nil
}

// covers reports whether a stream that waits for f waits for other, too.
func (f *fence) covers(other *fence) bool {
	return f.core.Page == other.core.Page && f.word.page == other.word.page && f.core.Offset == other.core.Offset &&
		int32(f.core.Value-other.core.Value) >= 0 //nolint:gosec // it wraps around
}

// forget drops the fences that were reached. The caller holds mu.
func (s *Stream) forget() {
	s.waits = slices.DeleteFunc(s.waits, func(w Wait) bool { return !w.Waiting() && w.Outcome() == nil })
}

// waiting reports whether a fence was not reached yet. The caller holds mu.
func (s *Stream) waiting() bool { return slices.ContainsFunc(s.waits, Wait.Waiting) }

// Synchronize waits until the stream has done all work, or until ctx ends, and returns the error of ctx then. Otherwise
// the error is why a program did not do what the stream waited for.
func (s *Stream) Synchronize(ctx context.Context) error {
	s.mu.Lock()
	waits := slices.Clone(s.waits)
	s.mu.Unlock()
	err := driver.Poll(ctx, func() (done bool, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return false, errStreamClosed()
		}
		err = s.primary.Do(func() (err error) { done, err = driver.StreamQuery(s.Handle); return err })
		return done, err
	})
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	s.mu.Lock()
	s.waits = slices.DeleteFunc(s.waits, func(w Wait) bool { return slices.Contains(waits, w) })
	s.mu.Unlock()
	for _, w := range waits {
		if err == nil {
			err = w.Outcome()
		}
	}
	return err
}

// reached reports whether the stream has done all that it was given before its count was at. It never waits: behind a
// fence the queue may be full, and nothing is done before the fence in any case.
func (s *Stream) reached(at uint64) bool {
	if !s.mu.TryLock() {
		return false // it is being given work
	}
	defer s.mu.Unlock()
	if s.done >= at {
		return true
	}
	err := s.primary.Do(func() error {
		for len(s.marks) > 0 {
			happened, err := driver.EventQuery(s.marks[0].event)
			if err != nil || !happened {
				return err
			}
			s.done = s.marks[0].at
			s.events = append(s.events, s.marks[0].event)
			s.marks = s.marks[1:]
		}
		if s.done >= at || s.closed || s.waiting() || len(s.marks) > 0 && s.marks[len(s.marks)-1].at >= at {
			return nil
		}
		capturing, err := driver.StreamCapturing(s.Handle)
		if err != nil || capturing {
			return err
		}
		return s.mark(s.given.Load())
	})
	if err != nil { // the context is broken, and has no work left
		s.done = math.MaxUint64
		s.broken.Store(true)
	}
	return s.done >= at
}

// mark records an event in the context. The caller holds mu.
func (s *Stream) mark(at uint64) (err error) {
	m := mark{at: at}
	if n := len(s.events); n > 0 {
		m.event = s.events[n-1]
		s.events = s.events[:n-1]
	} else if m.event, err = driver.EventCreate(driver.EventDisableTiming); err != nil {
		return err
	}
	s.marks = append(s.marks, m)
	return driver.EventRecord(m.event, s.Handle)
}

// Close destroys the stream. The GPU still does the work that the stream was given, and memory that the stream used
// waits for that. Close is idempotent.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.primary.Do(func() error {
		return errors.Join(s.mark(math.MaxUint64), driver.StreamDestroy(s.Handle)) // there is room for the last mark
	})
	if err != nil {
		s.done = math.MaxUint64
	}
	go func() { // the events stay until they have happened
		_ = driver.Poll(context.Background(), func() (bool, error) { return s.reached(math.MaxUint64), nil })
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.primary.Do(func() error { // or they went with their context
			for _, m := range s.marks {
				s.events = append(s.events, m.event)
			}
			for _, e := range s.events {
				_ = driver.EventDestroy(e)
			}
			return nil
		})
		s.events, s.marks = nil, nil
		_ = s.primary.Close()
	}()
	return err
}

func errStreamClosed() error {
	return &core.Error{Kind: core.ErrClosed, Err: errors.New("the stream is closed")}
}
