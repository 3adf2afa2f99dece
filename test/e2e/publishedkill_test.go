package e2e

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// republishing publishes one array after another, for good.
const republishing = `
import itertools
import numpy as np, ndbridge
for i in itertools.count():
    ndbridge.publish("frame", np.full(1 << 14, float(i)))
`

// kills is how often each side is killed.
func kills() int {
	if harness.CI() {
		return 50
	}
	return 5
}

// TestPublisherIsKilled: whoever takes views of what is published just then gets whole ones, or the error
// that says so, and the host keeps nothing.
func TestPublisherIsKilled(t *testing.T) {
	for range kills() {
		held := harness.Held(t)
		t.Run("kill", killPublisher) // which cleans up behind itself
		held.Same(t)
		if t.Failed() {
			return
		}
	}
}

func killPublisher(t *testing.T) {
	run := harness.Start(t, republishing, harness.Options{})
	pid := run.PID(t)
	var views atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		src := source(t, run, "frame")
		callers.Go(func() {
			for {
				view, err := src.View(t.Context())
				if err != nil {
					if !errors.Is(err, core.ErrUnavailable) {
						t.Errorf("a view of a program that was killed: %v", err)
					}
					return
				}
				data, err := core.Slice[float64](view)
				if err != nil || slices.Min(data) != slices.Max(data) {
					t.Errorf("elements from %v to %v, %v", slices.Min(data), slices.Max(data), err)
				}
				closed(t, view)
				views.Add(1)
			}
		})
	}
	moment := rand.Int64N(2000)
	harness.Eventually(t, harness.StartBound, "views are taken", func() bool { return views.Load() > moment })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	callers.Wait()
	if err := run.Host.Close(); err != nil {
		t.Error(err)
	}
}

// TestReaderIsKilled: a host that is killed while it takes views of what is published leaves no process and
// no file.
func TestReaderIsKilled(t *testing.T) {
	for range kills() {
		killHost(t, republishing, time.Duration(rand.Int64N(int64(50*time.Millisecond)))+1, 0)
	}
}
