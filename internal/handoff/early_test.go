package handoff_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/handoff"
)

// early gives what a caller was shown, and what the answer was in the end.
func early(t *testing.T, client *handoff.MailboxClient, request []byte) (shown, answer []byte, held bool) {
	t.Helper()
	slot, err := client.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	slot.Spin = time.Minute
	slot.Early = func(answer []byte) {
		if shown != nil {
			t.Error("it was shown twice")
		}
		shown = bytes.Clone(answer)
	}
	got, err := slot.Call(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return shown, bytes.Clone(got), slot.Held
}

// shows answers a request with itself, and shows that before. It goes on when proceed says so.
func shows(t *testing.T, spin time.Duration, proceed <-chan struct{}, then func(answer []byte) []byte) *handoff.MailboxClient {
	t.Helper()
	var server *handoff.MailboxServer
	made := make(chan struct{})
	client, s := connect(t, 1, spin, func(request, answer []byte) []byte {
		<-made
		if request[0] == 0 { // an ordinary one
			return echo(request, answer)
		}
		server.Early(append(answer, request...))
		<-proceed
		return then(answer)
	}, nil)
	server = s
	close(made)
	return client
}

func holds([]byte) []byte { return nil }

func TestAnAnswerIsShownBeforeItHolds(t *testing.T) {
	t.Parallel()
	for name, spin := range map[string]time.Duration{"spinning": time.Minute, "asleep": 0} {
		proceed := make(chan struct{})
		client := shows(t, spin, proceed, holds)
		slot, err := client.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slot.Early = func(answer []byte) {
			if !bytes.Equal(answer, []byte{1, 2}) {
				t.Errorf("%s: %x was shown", name, answer)
			}
			close(proceed) // without it the call never ends
		}
		if got, err := slot.Call(t.Context(), []byte{1, 2}); err != nil || !slot.Held || !bytes.Equal(got, []byte{1, 2}) {
			t.Errorf("%s: Call = %x, %v; held %v", name, got, err, slot.Held)
		}
		slot.Release()
	}
}

// TestNothingIsShownToACallerThatHasGone: the answer comes when nobody wants it any more.
func TestNothingIsShownToACallerThatHasGone(t *testing.T) {
	t.Parallel()
	var server *handoff.MailboxServer
	made, gone, late := make(chan struct{}), make(chan struct{}), make(chan []byte, 1)
	client, s := connect(t, 1, 0, func(request, answer []byte) []byte {
		<-made
		<-gone
		server.Early(append(answer, request...))
		return nil
	}, func(answer []byte) { late <- bytes.Clone(answer) })
	server = s
	close(made)
	slot, err := client.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slot.Early = func([]byte) { t.Error("it was shown") }
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := slot.Call(ctx, []byte{1, 2}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call = %v; want the context's error", err)
	}
	close(gone)
	if got := <-late; !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("the late answer is %x", got)
	}
}

func TestAnAnswerThatWasShownDoesNotHold(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	close(proceed)
	for name, tt := range map[string]struct{ then, want []byte }{
		"another":  {[]byte{7, 7, 7}, []byte{7, 7, 7}},
		"too long": {make([]byte, handoff.MaxAnswer+1), nil},
		"the same": {[]byte{1, 2}, []byte{1, 2}},
	} {
		client := shows(t, time.Minute, proceed, func(answer []byte) []byte { return append(answer, tt.then...) })
		for range 100 {
			shown, got, held := early(t, client, []byte{1, 2})
			if held || !bytes.Equal(got, tt.want) || shown != nil && !bytes.Equal(shown, []byte{1, 2}) {
				t.Fatalf("%s: %x was shown, Call = %x, held %v", name, shown, got, held)
			}
		}
	}
}

// TestNoAnswerOfBeforeIsShown: also to a caller that asks for nothing that is shown.
func TestNoAnswerOfBeforeIsShown(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	close(proceed)
	client := shows(t, time.Minute, proceed, holds)
	for i := range 1000 {
		request := []byte{byte(i % 2), byte(i)}
		shown, got, held := early(t, client, request)
		if !bytes.Equal(got, request) || shown != nil && !bytes.Equal(shown, request) || held != (shown != nil) || held && request[0] == 0 {
			t.Fatalf("call %d: %x was shown, Call = %x, held %v", i, shown, got, held)
		}
	}
}

// TestTooLongToBeShown: the caller waits for the answer that takes its place.
func TestTooLongToBeShown(t *testing.T) {
	t.Parallel()
	var server *handoff.MailboxServer
	made := make(chan struct{})
	client, s := connect(t, 1, time.Minute, func(_, answer []byte) []byte {
		<-made
		server.Early(make([]byte, handoff.MaxAnswer+1))
		return append(answer, 3)
	}, nil)
	server = s
	close(made)
	if shown, got, held := early(t, client, []byte{1}); shown != nil || held || !bytes.Equal(got, []byte{3}) {
		t.Errorf("%x was shown, Call = %x, held %v", shown, got, held)
	}
}
