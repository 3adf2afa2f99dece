package e2e

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestReadsGoOnWhenTheProgramIsKilled kills the program with views of every route open, in the
// middle of reads of them: the reads go on and see the same values, and the session says at once
// that the program is gone.
func TestReadsGoOnWhenTheProgramIsKilled(t *testing.T) {
	const (
		tries = 5
		bound = 100 * time.Millisecond // for the fastest: the others may meet a busy machine
	)
	var noticed []time.Duration
	for range tries {
		noticed = append(noticed, killWhileReading(t))
	}
	t.Logf("noticed after %v", noticed)
	if fastest := slices.Min(noticed); fastest > bound {
		t.Errorf("the session noticed the program's end after %v (the fastest of %v); want at most %v", fastest, noticed, bound)
	}
}

func killWhileReading(t *testing.T) time.Duration {
	t.Helper()
	run := harness.Start(t, `
import os, numpy as np, remote
shared = np.full(1 << 20, 2.0)
small = np.full(1 << 10, 2.0)
mapped = np.memmap(os.path.join(os.path.dirname(__file__), "mapped"), "f8", "w+", shape=(1 << 18,))
mapped[:] = 2
remote.serve()
`, harness.Options{})
	pid := run.PID(t)
	harness.Eval[int](t, run.Remote, "1") // answers when all arrays are filled
	var views []*core.View
	for _, name := range []string{"shared", "small", "mapped"} {
		views = append(views, run.View(t, name))
	}
	reading := make(chan struct{})
	stop := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- readAll(views, reading, stop)
	}()
	select {
	case <-reading:
	case err := <-result:
		t.Fatal(err)
	}
	start := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-run.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the session has not noticed after 10 s")
	}
	noticed := time.Since(start)

	if err := run.Err(); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Session.Err is %v; want ErrUnavailable", err)
	}
	if _, err := run.Session.View(t.Context(), "shared"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a view after the end: %v; want ErrUnavailable", err)
	}
	harness.Eventually(t, 5*time.Second, "the program has left the process table", func() bool {
		_, err := os.Stat("/proc/" + itoa(pid))
		return errors.Is(err, os.ErrNotExist)
	})
	close(stop)
	if err := <-result; err != nil {
		t.Error(err)
	}
	for _, view := range views {
		if err := view.Close(); err != nil {
			t.Errorf("closing a view of a dead program: %v", err)
		}
	}
	if err := run.Close(); err != nil {
		t.Errorf("closing the session of a dead program: %v", err)
	}
	return noticed
}

// readAll sums views of 2.0 over and over, and once more after stop was closed.
func readAll(views []*core.View, reading, stop chan struct{}) error {
	for last := false; ; {
		select {
		case <-stop:
			last = true
		default:
		}
		for _, view := range views {
			data, err := core.Slice[float64](view)
			if err != nil {
				return err
			}
			sum := 0.0
			for _, x := range data {
				sum += x
			}
			if sum != 2*float64(len(data)) {
				return errors.New("a view changed when its program was killed")
			}
		}
		if last {
			return nil
		}
		select {
		case <-reading:
		default:
			close(reading)
		}
	}
}
