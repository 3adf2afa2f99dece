package calls

import (
	"errors"
	"testing"
)

// TestSlowStart: while the program takes long to start a worker, calls use those that there are, and the client can be closed.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	asked, started := make(chan struct{}, 3), make(chan struct{})
	w.start = func(n int) error {
		if n > 1 {
			asked <- struct{}{}
			<-started
		}
		return nil
	}
	result := make(chan error, 3)
	block := func() {
		_, err := w.call(t.Context(), "block")
		result <- err
	}
	go block()
	<-w.begun
	go block() // needs a second worker
	<-asked
	w.release <- struct{}{}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if a, err := w.call(t.Context(), "x"); err != nil || string(a.Values) != "x" {
		t.Errorf("beside a worker that is being started: %q, %v", a.Values, err)
	}
	closed := make(chan error)
	go func() { closed <- w.client.Close() }()
	<-w.client.closing
	close(started)
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("a call whose worker came when the client was closed = %v, want ErrClosed", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestFailedStart: a worker that the program did not start is asked for again.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	odd := errors.New("odd")
	w.start = func(int) error { return odd }
	for range 3 {
		if _, err := w.call(t.Context(), "x"); !errors.Is(err, odd) {
			t.Errorf("a call without a worker = %v", err)
		}
	}
	w.start = nil
	if a, err := w.call(t.Context(), "x"); err != nil || string(a.Values) != "x" {
		t.Errorf("after that: %q, %v", a.Values, err)
	}
}
