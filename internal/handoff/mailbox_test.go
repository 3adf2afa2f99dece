package handoff_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// connect serves handle, with these spins on both sides.
func connect(tb testing.TB, slots int, spin time.Duration, handle handoff.Handler, abandoned func([]byte)) (*handoff.MailboxClient, *handoff.MailboxServer) {
	tb.Helper()
	there, here := shmtest.Twice(tb, handoff.MailboxSize(slots))
	server, err := handoff.NewMailboxServer(there, slots, spin, handle)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	client, err := handoff.NewMailboxClient(here, spin, time.Minute, abandoned)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client, server
}

// call has a slot for one request, and copies the answer.
func call(ctx context.Context, client *handoff.MailboxClient, request, answer []byte) ([]byte, error) {
	slot, err := client.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	got, err := slot.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	return answer[:copy(answer, got)], nil
}

func echo(request, answer []byte) []byte { return append(answer, request...) }

func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	for name, spin := range map[string]time.Duration{"spinning": 50 * time.Microsecond, "asleep": 0} {
		for _, slots := range []int{1, 8} {
			client, _ := connect(t, slots, spin, echo, nil)
			var callers sync.WaitGroup
			for caller := range 12 {
				callers.Go(func() {
					request, answer := make([]byte, 16), make([]byte, handoff.MaxAnswer)
					for i := range 2000 {
						binary.LittleEndian.PutUint64(request, uint64(caller))
						binary.LittleEndian.PutUint64(request[8:], uint64(i))
						got, err := call(t.Context(), client, request, answer)
						if err != nil || !bytes.Equal(got, request) {
							t.Errorf("%s, %d slots: caller %d, call %d: %x, %v", name, slots, caller, i, got, err)
							return
						}
					}
				})
			}
			callers.Wait()
		}
	}
}

func TestMessagesOfAllSizes(t *testing.T) {
	t.Parallel()
	client, _ := connect(t, 1, 0, func(request, answer []byte) []byte {
		return append(append(answer, request...), bytes.Repeat([]byte{7}, handoff.MaxAnswer-len(request))...)
	}, nil)
	answer := make([]byte, handoff.MaxAnswer)
	for _, n := range []int{0, 1, 100, handoff.MaxRequest} {
		request := bytes.Repeat([]byte{9}, n)
		got, err := call(t.Context(), client, request, answer)
		if err != nil || len(got) != handoff.MaxAnswer || !bytes.Equal(got[:n], request) || got[handoff.MaxAnswer-1] != 7 {
			t.Errorf("a request of %d bytes: %d bytes, %v", n, len(got), err)
		}
	}
}

// TestAnswersThatCameTooLate: a caller that gives up leaves its slot to the answer, which is handed
// over, and which no later caller takes for its own.
func TestAnswersThatCameTooLate(t *testing.T) {
	t.Parallel()
	proceed, late := make(chan struct{}), make(chan []byte, 1)
	client, _ := connect(t, 2, 0, func(request, answer []byte) []byte {
		if request[0] == 1 {
			<-proceed
		}
		return echo(request, answer)
	}, func(answer []byte) { late <- bytes.Clone(answer) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	answer := make([]byte, handoff.MaxAnswer)
	if _, err := call(ctx, client, []byte{1}, answer); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call = %v; want the context's error", err)
	}
	close(proceed)
	for i := range 100 {
		want := []byte{2, byte(i)}
		if got, err := call(t.Context(), client, want, answer); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Call = %x, %v; want %x", got, err, want)
		}
	}
	if got := <-late; !bytes.Equal(got, []byte{1}) {
		t.Errorf("the late answer is %x", got)
	}
}

func TestTheServersEndEndsCalls(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 1), make(chan struct{})
	client, server := connect(t, 1, 0, func([]byte, []byte) []byte {
		begun <- struct{}{}
		<-proceed
		return nil
	}, nil)
	ended := make(chan error)
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, handoff.MaxAnswer))
		ended <- err
	}()
	<-begun
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, handoff.MaxAnswer)) // waits for the slot
		ended <- err
	}()
	go server.Close()
	if err := <-ended; !errors.Is(err, handoff.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	if err := <-ended; !errors.Is(err, handoff.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	close(proceed)
	if _, err := call(t.Context(), client, nil, nil); !errors.Is(err, handoff.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
}

func TestOwnEndEndsCalls(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	client, _ := connect(t, 1, 0, func([]byte, []byte) []byte { close(begun); <-proceed; return nil }, nil)
	ended := make(chan error)
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, handoff.MaxAnswer))
		ended <- err
	}()
	<-begun
	client.Close()
	if err := <-ended; !errors.Is(err, handoff.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	close(proceed)
	client.Close()
}

// TestAServerThatDoesNotAnswer: nobody waits longer than the client's limit, be it for an answer or for
// a slot.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, handoff.MailboxSize(1))
	proceed := make(chan struct{})
	server, err := handoff.NewMailboxServer(there, 1, 0, func([]byte, []byte) []byte { <-proceed; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer close(proceed)
	client, err := handoff.NewMailboxClient(here, 0, 10*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		if _, err := call(t.Context(), client, nil, make([]byte, handoff.MaxAnswer)); !errors.Is(err, handoff.ErrSlow) {
			t.Errorf("Call = %v; want ErrSlow", err)
		}
	}
}

func TestNotAMailbox(t *testing.T) {
	t.Parallel()
	good, _ := shmtest.Twice(t, handoff.MailboxSize(2))
	server, err := handoff.NewMailboxServer(good, 2, 0, echo)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	for name, edit := range map[string]func(b []byte) []byte{
		"nothing":       func([]byte) []byte { return nil },
		"zeros":         func(b []byte) []byte { clear(b); return b },
		"cut":           func(b []byte) []byte { return b[:len(b)-1] },
		"a header only": func(b []byte) []byte { return b[:4096] },
		"no slots":      func(b []byte) []byte { b[0x0c] = 0; return b },
		"many slots":    func(b []byte) []byte { b[0x0c] = 65; return b },
		"version":       func(b []byte) []byte { b[0x08] = 2; return b },
	} {
		if _, err := handoff.NewMailboxClient(edit(bytes.Clone(good)), 0, 0, nil); err == nil {
			t.Errorf("%s: taken for a mailbox", name)
		}
	}
	if _, err := handoff.NewMailboxServer(make([]byte, 4096), 1, 0, echo); err == nil {
		t.Error("a mailbox was made in too little memory")
	}
	if _, err := handoff.NewMailboxServer(make([]byte, handoff.MailboxSize(65)), 65, 0, echo); err == nil {
		t.Error("a mailbox of 65 slots was made")
	}
}

// TestAWildPeer writes random words all over the memory while calls go on: they may get wrong answers,
// or none, but all end in time, and nothing faults.
func TestAWildPeer(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, handoff.MailboxSize(4))
	server, err := handoff.NewMailboxServer(there, 4, 0, echo)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := handoff.NewMailboxClient(here, 0, time.Minute, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var stop atomic.Bool
	var wild, callers sync.WaitGroup
	wild.Go(func() {
		for x := uint32(1); !stop.Load(); {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			offset := int(x) % len(there) &^ 3
			if offset/64 != 0xc0/64 { // but do not say that it is closed
				handoff.MailboxWord(there, offset).Store(x)
			}
		}
	})
	for range 8 {
		callers.Go(func() {
			answer := make([]byte, handoff.MaxAnswer)
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Millisecond)
				got, err := call(ctx, client, []byte("hello"), answer)
				cancel()
				if err == nil && len(got) > len(answer) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Call = %d bytes, %v", len(got), err)
				}
			}
		})
	}
	callers.Wait()
	stop.Store(true)
	wild.Wait()
}

//nolint:paralleltest // it counts allocations
func TestCallsMakeNoGarbage(t *testing.T) {
	client, _ := connect(t, 1, time.Millisecond, echo, nil)
	request, answer := []byte("x"), make([]byte, handoff.MaxAnswer)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := call(t.Context(), client, request, answer); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func BenchmarkCall(b *testing.B) {
	for name, spin := range map[string]time.Duration{"spinning": time.Millisecond, "asleep": 0} {
		b.Run(name, func(b *testing.B) {
			client, _ := connect(b, 1, spin, echo, nil)
			request, answer := make([]byte, 16), make([]byte, handoff.MaxAnswer)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), client, request, answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNoWakeIsLost has each side begin to sleep just when the other one writes. With the race detector, a word that is stored and not swapped may be
// written after the look at whether the other side sleeps.
func TestNoWakeIsLost(t *testing.T) {
	t.Parallel()
	const calls, most = 200_000, 500
	client, _ := connect(t, 1, 0, echo, nil)
	request, answer := make([]byte, 8), make([]byte, handoff.MaxAnswer)
	for i := range calls {
		binary.LittleEndian.PutUint64(request, uint64(i))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute/2)
		got, err := call(ctx, client, request, answer)
		cancel()
		if err != nil || !bytes.Equal(got, request) {
			t.Fatalf("call %d: %x, %v", i, got, err)
		}
		for range i % most { //nolint:revive // until the other side is about to sleep
		}
	}
}
