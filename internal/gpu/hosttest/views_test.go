//go:build cuda

package hosttest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
)

// pinned makes a view of n floats in host memory that the driver knows.
func pinned(t *testing.T, n int) *core.View {
	t.Helper()
	v := hostView(t, n, true)
	unpin, err := cuda.Pin(0, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unpin(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// section makes a view of the elements lo to hi.
func section(t *testing.T, v *core.View, lo, hi int) *core.View {
	t.Helper()
	p, err := v.Sub(0, lo, hi)
	if err != nil {
		t.Error(err)
	}
	return p
}

// TestLaunchWhileViewsClose: launches that pass the same views in another order, while others close
// these, wait for each other only as long as a launch takes.
func TestLaunchWhileViewsClose(t *testing.T) {
	t.Parallel()
	v, s, f := pinned(t, 1024), stream(t), kernel(t, "copy")
	for range 300 {
		a, b := section(t, v, 0, 512), section(t, v, 512, 1024)
		var all sync.WaitGroup
		for _, views := range [][2]*core.View{{a, b}, {b, a}} {
			for range 4 {
				all.Go(func() {
					err := f.Launch(s, once, views[0], views[1], uint64(0), uint64(0))
					if err != nil && !errors.Is(err, core.ErrClosed) {
						t.Error(err)
					}
				})
			}
			all.Go(func() { views[0].Close() })
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		within(t, "launches on views that are being closed", done)
		if err := s.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLaunchOnPartlyPinned: that both ends of an array are pinned is not enough.
func TestLaunchOnPartlyPinned(t *testing.T) {
	t.Parallel()
	const n = 4 * 1024 // of four pages
	v, s, f := hostView(t, n, true), stream(t), kernel(t, "copy")
	for _, lo := range []int{0, 3 * 1024} {
		end := section(t, v, lo, lo+1024)
		unpin, err := cuda.Pin(0, end)
		if err != nil {
			t.Fatal(err)
		}
		defer unpin() //nolint:errcheck // of what is pinned does not fail
		if err := f.Launch(s, once, end, end, uint64(0), uint64(0)); err != nil {
			t.Errorf("launch on what is pinned: %v", err)
		}
		if err := s.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		end.Close()
	}
	err := f.Launch(s, once, v, v, uint64(0), uint64(0))
	if !errors.Is(err, core.ErrDevice) || !strings.Contains(err.Error(), "pin all of it") {
		t.Errorf("launch on what is pinned in part: %v", err)
	}
}
