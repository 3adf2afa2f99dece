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
)

// onGPU is memory that says it is a GPU's, and is read as f says.
type onGPU struct {
	core.Memory

	f func() error
}

func (onGPU) Bytes() []byte                                        { return nil }
func (onGPU) CopyIn(context.Context, core.Layout, []byte) error    { return core.ErrReadOnly }
func (m onGPU) CopyOut(context.Context, []byte, core.Layout) error { return m.f() }

// someOnGPU has a sampler watch arrays of a GPU.
func someOnGPU(t *testing.T, s *Sampler, arrays int, read func() error) core.Device {
	t.Helper()
	d := core.Device{Kind: core.CUDA}
	for i := range arrays {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{100}, Device: d})
		if err != nil {
			t.Fatal(err)
		}
		v, err := core.NewView(l, onGPU{coretest.NewMemory(make([]byte, 100)), read}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close() }) // memory of this process
		s.Add(array(strconv.Itoa(i), of(v)))
	}
	return d
}

// TestGPUTurnsOnce looks at all arrays that a GPU sums up at the same time, and counts no time that they wait for it.
func TestGPUTurnsOnce(t *testing.T) {
	t.Parallel()
	const arrays, wait = 8, 50 * time.Millisecond
	var begun atomic.Int64
	all := make(chan struct{})
	s := New(Options{})
	d := someOnGPU(t, s, arrays, func() error {
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
	s.gpus = map[core.Device]bool{d: true}
	took, err := s.round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.State().Arrays {
		if a.Error != "" || a.Looks != 1 {
			t.Errorf("%s: %d looks, %s", a.Name, a.Looks, a.Error)
		}
	}
	if took < arrays*gpuTakes || took > wait/2 {
		t.Errorf("the looks have taken %v", took)
	}
}

// TestGPUGetsReady does not count what it takes to get a GPU ready.
func TestGPUGetsReady(t *testing.T) {
	t.Parallel()
	const ready = 200 * time.Millisecond
	looks := 0
	s := New(Options{})
	someOnGPU(t, s, 2, func() error {
		if looks++; looks == 1 {
			for begun := Clock(unix.CLOCK_THREAD_CPUTIME_ID); Clock(unix.CLOCK_THREAD_CPUTIME_ID)-begun < ready; {
				runtime.Gosched()
			}
		}
		return nil
	})
	if took, err := s.round(t.Context()); err != nil || looks != 3 || took > ready/2 {
		t.Errorf("%d looks have taken %v: %v", looks, took, err)
	}
}
