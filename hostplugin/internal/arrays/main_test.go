package arrays_test

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/calls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errProgram is what a program says that refuses.
var errProgram = errors.New("the program refuses")

// program is one that was given memory.
type program struct {
	mu       sync.Mutex
	has      map[uint32]given
	adopted  int
	refuses  bool          // to take memory, and to give it back
	held     chan struct{} // Forget waits until it is closed; nil: it does not
	counting [calls.MaxSegments]atomic.Uint32
}

// given is memory that a program has.
type given struct {
	text     string // of its first bytes
	size     int64
	writable bool
}

func (p *program) Adopt(_ context.Context, segment uint32, files []*os.File, a calls.Adoption) error {
	size, writable := a.Size, a.Writable
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return errProgram
	}
	text := make([]byte, min(size, 8))
	if _, err := files[0].ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if p.has == nil {
		p.has = make(map[uint32]given)
	}
	p.has[segment] = given{string(text), size, writable}
	p.adopted++
	return nil
}

func (p *program) Forget(_ context.Context, segment uint32) error {
	if p.held != nil {
		<-p.held
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return errProgram
	}
	delete(p.has, segment)
	return nil
}

func (p *program) word(segment uint32) *atomic.Uint32 { return &p.counting[segment] }

// count gives how much memory the program has, and how often it was given some.
func (p *program) count() (has, adopted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.has), p.adopted
}

// at gives the memory that the program has under a number.
func (p *program) at(segment uint32) given {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has[segment]
}

// space gives a space of a program, which is closed when the test ends.
func space(t *testing.T, p *program) *arrays.Space {
	t.Helper()
	s := arrays.NewSpace(p, p.word)
	t.Cleanup(s.Close)
	return s
}

// memory gives memory that begins with a text, and is closed when the test ends.
func memory(t *testing.T, size int64, text string) *arrays.Memory {
	t.Helper()
	m, err := arrays.New(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	copy(m.Bytes(), text)
	return m
}

// segment gives memory to a program.
func segment(t *testing.T, s *arrays.Space, m *arrays.Memory, writable bool) uint32 {
	t.Helper()
	n, err := s.Segment(t.Context(), m.File, writable)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-late:
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func wants(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
	if _, ours := errors.AsType[*core.Error](err); !ours && !errors.Is(kind, errProgram) {
		t.Errorf("error %v is no core.Error", err)
	}
}
