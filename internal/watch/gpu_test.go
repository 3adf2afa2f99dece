package watch

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// someOnGPU makes a sampler of arrays of a GPU, which are summed up as f says.
func someOnGPU(t *testing.T, arrays int, f func(*stats.Options) error) *Sampler {
	t.Helper()
	s := New(Options{})
	s.of = func(_ context.Context, v *core.View, o *stats.Options) (*stats.Summary, error) {
		return &stats.Summary{Len: v.Len(), Seen: v.Len(), Sweep: 1}, f(o)
	}
	for i := range arrays {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{100}, Device: core.Device{Kind: core.CUDA}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := core.NewView(l, coretest.NewMemory(make([]byte, 100)), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close() }) // memory of this process
		s.Add(array(strconv.Itoa(i), of(v)))
	}
	return s
}

// looked fails unless there was one look at each array.
func looked(t *testing.T, s *Sampler) {
	t.Helper()
	for _, a := range s.State().Arrays {
		if a.Error != "" || a.Looks != 1 {
			t.Errorf("%s: %d looks, %s", a.Name, a.Looks, a.Error)
		}
	}
}

// TestGPUTurnsOnce looks at all arrays that a GPU sums up at the same time, and counts no time in which they wait for it.
func TestGPUTurnsOnce(t *testing.T) {
	t.Parallel()
	const arrays, wait = 8, 50 * time.Millisecond
	var begun atomic.Int64
	all := make(chan struct{})
	s := someOnGPU(t, arrays, func(o *stats.Options) error {
		if !o.NoCopy {
			return errors.New("it may be copied")
		}
		if begun.Add(1) == arrays {
			time.Sleep(wait)
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-time.After(10 * time.Second):
			return errors.New("no other array is looked at meanwhile")
		}
	})
	took, err := s.round(t.Context())
	if err != nil || took < arrays*gpuTakes || took > wait/2 {
		t.Errorf("the looks have taken %v: %v", took, err)
	}
	looked(t, s)
}

// TestGPUCannot looks at arrays of a GPU that does not sum them up one after the other, and counts what that takes.
func TestGPUCannot(t *testing.T) {
	t.Parallel()
	const arrays, each = 4, 20 * time.Millisecond
	var at atomic.Int64
	s := someOnGPU(t, arrays, func(o *stats.Options) error {
		if o.NoCopy {
			return &core.Error{Kind: core.ErrUnsupported}
		}
		defer at.Add(-1)
		if at.Add(1) > 1 {
			return errors.New("another copy is there at the same time")
		}
		for begun := Clock(unix.CLOCK_THREAD_CPUTIME_ID); Clock(unix.CLOCK_THREAD_CPUTIME_ID)-begun < each; {
			runtime.Gosched()
		}
		return nil
	})
	if took, err := s.round(t.Context()); err != nil || took < arrays*each {
		t.Errorf("the looks have taken %v: %v", took, err)
	}
	looked(t, s)
}
