package arrays

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// slow forgets when it is told to.
type slow struct {
	asked, forget chan struct{}
}

func (p *slow) Adopt(context.Context, uint32, []*os.File, calls.Adoption) error { return nil }

func (p *slow) Forget(context.Context, uint32) error {
	p.asked <- struct{}{}
	<-p.forget
	return nil
}

// TestNumbersThatAreBeingForgotten: when all numbers are in use, one that the program is about to forget is waited for.
func TestNumbersThatAreBeingForgotten(t *testing.T) {
	t.Parallel()
	p := &slow{asked: make(chan struct{}, 8), forget: make(chan struct{}, 8)}
	var held [calls.MaxSegments]atomic.Uint32
	s := NewSpace(p, func(n uint32) *atomic.Uint32 { return &held[n] })
	s.next = calls.MaxSegments - 1 // the others are in use
	segment := func(ctx context.Context) (uint32, *Memory, error) {
		m, err := New(1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		n, err := s.Segment(ctx, m.File, true)
		return n, m, err
	}
	last, m, err := segment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := segment(t.Context()); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("one more than all = %v, want ErrUnsupported", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := segment(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait whose context has ended = %v", err)
	}
	got := make(chan uint32)
	go func() {
		n, _, err := segment(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- n
	}()
	p.forget <- struct{}{}
	if n := <-got; n != last {
		t.Errorf("the number %d was given, want %d, which the program has forgotten", n, last)
	}
	s.Close()
}
