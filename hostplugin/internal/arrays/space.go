package arrays

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// Program takes memory from the host.
type Program interface {
	Adopt(ctx context.Context, segment uint32, files []*os.File, a calls.Adoption) error
	Forget(ctx context.Context, segment uint32) error
}

// Space numbers the memory that one program was given, and the words that count its objects. All methods are safe for concurrent use.
type Space struct {
	program Program
	held    func(segment uint32) *atomic.Uint32
	ctx     context.Context //nolint:containedctx // the space's own life: that of the session

	mu     sync.Mutex
	closed bool
	has    map[*File]struct{}
	next   uint32   // all below it are in use, free or over
	free   []uint32 // nobody uses them
	over   []uint32 // that the host has taken back, and objects in the program may still use
	loans  loans

	ending int           // numbers that the program is asked to forget
	ended  chan struct{} // closed, and replaced, when it has forgotten one; nil: nobody waits

	forgetting sync.WaitGroup // grows while closed is false

	emptyMu sync.Mutex
	empty   *Memory // for arrays without elements; nil: none was needed
}

// entry is memory that a program has, once for reading and once for writing.
type entry struct{ sides [2]side }

// side is one number of it.
type side struct {
	adopting sync.Mutex
	number   atomic.Int64 // the number, plus 1; 0: it was not given yet
}

// NewSpace numbers the memory of a program, whose objects held counts. It must be closed before the memory of held goes.
func NewSpace(p Program, held func(segment uint32) *atomic.Uint32) *Space {
	return &Space{program: p, held: held, ctx: context.Background(), has: make(map[*File]struct{})}
}

// Close ends the numbering: the program is gone. The host's own memory stays, and what was lent goes back.
func (s *Space) Close() {
	s.mu.Lock()
	s.closed = true
	has := s.has
	s.has = nil
	lent := s.loans.end()
	s.mu.Unlock()
	for _, release := range lent {
		release()
	}
	s.forgetting.Wait()
	for f := range has {
		f.leave(s)
	}
	s.emptyMu.Lock()
	defer s.emptyMu.Unlock()
	if s.empty != nil {
		_ = s.empty.Close() // memory that nobody uses
	}
}

// Empty gives the number of memory for arrays without elements.
func (s *Space) Empty(ctx context.Context) (uint32, error) {
	s.emptyMu.Lock()
	defer s.emptyMu.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, &core.Error{Op: "call", Kind: core.ErrClosed}
	}
	if s.empty == nil {
		var err error
		if s.empty, err = New(0); err != nil {
			return 0, err
		}
	}
	return s.Segment(ctx, s.empty.File, false)
}

// Segment gives memory to the program, unless it has it, and tells its number there. The caller keeps the memory open
// meanwhile.
func (s *Space) Segment(ctx context.Context, f *File, writable bool) (uint32, error) {
	e, err := f.in(s)
	if err != nil {
		return 0, err
	}
	way := &e.sides[0]
	if writable {
		way = &e.sides[1]
	}
	if n := way.number.Load(); n != 0 {
		return uint32(n - 1), nil
	}
	way.adopting.Lock()
	defer way.adopting.Unlock()
	if n := way.number.Load(); n != 0 {
		return uint32(n - 1), nil
	}
	n, err := s.take(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.program.Adopt(ctx, n, f.files, calls.Adoption{Size: f.size, Writable: writable, Handle: f.handle}); err != nil {
		s.giveBack(n) // the program may have it all the same
		return 0, err
	}
	way.number.Store(int64(n) + 1)
	return n, nil
}

// take gives a number that nobody uses. If there is none, it waits for one that the program is about to forget.
func (s *Space) take(ctx context.Context) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.closed {
			return 0, &core.Error{Op: "call", Kind: core.ErrClosed}
		}
		if n, ok := s.unused(); ok {
			return n, nil
		}
		if s.ending == 0 {
			return 0, &core.Error{
				Op: "call", Kind: core.ErrUnsupported,
				Err:    fmt.Errorf("the program has %d arrays of others, and can have no more", s.next),
				Remedy: "close arrays that are not needed any more, or use a pool",
			}
		}
		if s.ended == nil {
			s.ended = make(chan struct{})
		}
		ended := s.ended
		s.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if err := ctx.Err(); err != nil {
			return 0, &core.Error{Op: "call", Kind: err, Err: context.Cause(ctx)}
		}
	}
}

// unused gives a number that nobody uses, if there is one.
func (s *Space) unused() (uint32, bool) {
	if len(s.free) == 0 {
		still := s.over[:0]
		for _, n := range s.over {
			if s.held(n).Load() == 0 {
				s.free = append(s.free, n)
			} else {
				still = append(still, n)
			}
		}
		s.over = still
	}
	if n := len(s.free); n > 0 {
		number := s.free[n-1]
		s.free = s.free[:n-1]
		return number, true
	}
	if s.next == calls.MaxSegments {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// add notes memory that the space has, unless the space is closed.
func (s *Space) add(f *File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.has[f] = struct{}{}
	}
	return !s.closed
}

// forget takes memory back that is closed.
func (s *Space) forget(f *File, e *entry) {
	s.mu.Lock()
	delete(s.has, f)
	s.mu.Unlock()
	for i := range e.sides {
		if n := e.sides[i].number.Load(); n != 0 {
			s.giveBack(uint32(n - 1))
		}
	}
}

func (s *Space) giveBack(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return // the program is gone, or will be
	}
	s.ending++
	s.forgetting.Go(func() {
		err := s.program.Forget(s.ctx, number) // ends with the session
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ending--
		if s.ended != nil {
			close(s.ended)
			s.ended = nil
		}
		if err == nil && !s.closed {
			s.over = append(s.over, number)
		}
	})
}

func (s *Space) used(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range e.sides {
		if n := e.sides[i].number.Load(); n != 0 && !s.closed && s.held(uint32(n-1)).Load() != 0 {
			return true
		}
	}
	return false
}
