package ring_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect serves handle, with these spins on both sides.
func connect(tb testing.TB, lanes int, spin time.Duration, handle ring.Handler, abandoned func([]byte)) (*ring.Client, *ring.Server) {
	tb.Helper()
	there, here := shmtest.Twice(tb, ring.Size(lanes))
	server, err := ring.NewServer(there, lanes, spin, ring.Service{Handle: handle})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	client, err := ring.NewClient(here, spin, time.Minute, abandoned)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client, server
}

// call has a lane for one request, and copies the answer.
func call(ctx context.Context, client *ring.Client, request, answer []byte) ([]byte, error) {
	lane, err := client.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	got, _, err := lane.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	defer lane.Release()
	return answer[:copy(answer, got)], nil
}

func echo(request, answer []byte) int { return copy(answer, request) }

func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	for name, spin := range map[string]time.Duration{"spinning": 50 * time.Microsecond, "asleep": 0} {
		for _, lanes := range []int{1, 8} {
			client, _ := connect(t, lanes, spin, echo, nil)
			var callers sync.WaitGroup
			for caller := range 12 {
				callers.Go(func() {
					request, answer := make([]byte, 16), make([]byte, ring.MaxAnswer)
					for i := range 2000 {
						binary.LittleEndian.PutUint64(request, uint64(caller))
						binary.LittleEndian.PutUint64(request[8:], uint64(i))
						got, err := call(t.Context(), client, request, answer)
						if err != nil || !bytes.Equal(got, request) {
							t.Errorf("%s, %d lanes: caller %d, call %d: %x, %v", name, lanes, caller, i, got, err)
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
	client, _ := connect(t, 1, 0, func(request, answer []byte) int {
		n := copy(answer, request)
		return n + copy(answer[n:], bytes.Repeat([]byte{7}, ring.MaxAnswer-n))
	}, nil)
	answer := make([]byte, ring.MaxAnswer)
	for _, n := range []int{0, 1, 100, ring.MaxRequest} {
		request := bytes.Repeat([]byte{9}, n)
		got, err := call(t.Context(), client, request, answer)
		if err != nil || len(got) != ring.MaxAnswer || !bytes.Equal(got[:n], request) || got[ring.MaxAnswer-1] != 7 {
			t.Errorf("a request of %d bytes: %d bytes, %v", n, len(got), err)
		}
	}
}

// TestAnswersThatCameTooLate: a caller that gives up leaves its lane to the answer, which is handed
// over, and which no later caller takes for its own.
func TestAnswersThatCameTooLate(t *testing.T) {
	t.Parallel()
	proceed, late := make(chan struct{}), make(chan []byte, 1)
	client, _ := connect(t, 2, 0, func(request, answer []byte) int {
		if request[0] == 1 {
			<-proceed
		}
		return copy(answer, request)
	}, func(answer []byte) { late <- bytes.Clone(answer) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	answer := make([]byte, ring.MaxAnswer)
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
	client.Sweep()
	select {
	case got := <-late:
		if !bytes.Equal(got, []byte{1}) {
			t.Errorf("the late answer is %x", got)
		}
	default:
		t.Error("the late answer was not handed over")
	}
}

func TestTheServersEndEndsCalls(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 1), make(chan struct{})
	client, server := connect(t, 1, 0, func([]byte, []byte) int {
		begun <- struct{}{}
		<-proceed
		return 0
	}, nil)
	ended := make(chan error)
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, ring.MaxAnswer))
		ended <- err
	}()
	<-begun
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, ring.MaxAnswer)) // waits for the lane
		ended <- err
	}()
	go server.Close()
	if err := <-ended; !errors.Is(err, ring.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	if err := <-ended; !errors.Is(err, ring.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	close(proceed)
	if _, err := call(t.Context(), client, nil, nil); !errors.Is(err, ring.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
}

func TestOwnEndEndsCalls(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	client, _ := connect(t, 1, 0, func([]byte, []byte) int { close(begun); <-proceed; return 0 }, nil)
	ended := make(chan error)
	go func() {
		_, err := call(t.Context(), client, nil, make([]byte, ring.MaxAnswer))
		ended <- err
	}()
	<-begun
	client.Close()
	if err := <-ended; !errors.Is(err, ring.ErrClosed) {
		t.Errorf("Call = %v; want ErrClosed", err)
	}
	close(proceed)
	client.Close()
}

// TestMemoryIsNotTouchedAfterClose: when Close has returned the memory may go, whatever callers are just
// doing. Here it cannot be read any more: who does faults.
func TestMemoryIsNotTouchedAfterClose(t *testing.T) {
	t.Parallel()
	for range 100 {
		there, here := shmtest.Twice(t, ring.Size(2))
		server, err := ring.NewServer(there, 2, 0, ring.Service{Handle: echo})
		if err != nil {
			t.Fatal(err)
		}
		client, err := ring.NewClient(here, 0, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 4 { // more than lanes
			callers.Go(func() {
				for {
					lane, err := client.Acquire(t.Context())
					if errors.Is(err, ring.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					lane.Release()
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		client.Close()
		if err := unix.Mprotect(here, unix.PROT_NONE); err != nil {
			t.Error(err)
		}
		callers.Wait()
		server.Close()
	}
}

// TestAServerThatDoesNotAnswer: nobody waits longer than the client's limit, be it for an answer or for
// a lane.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, ring.Size(1))
	proceed := make(chan struct{})
	server, err := ring.NewServer(there, 1, 0, ring.Service{Handle: func([]byte, []byte) int { <-proceed; return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer close(proceed)
	client, err := ring.NewClient(here, 0, 10*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		if _, err := call(t.Context(), client, nil, make([]byte, ring.MaxAnswer)); !errors.Is(err, ring.ErrSlow) {
			t.Errorf("Call = %v; want ErrSlow", err)
		}
		if left := client.Sweep(); left != 1 {
			t.Errorf("%d answers have not come; want 1", left)
		}
	}
}

// TestBusyServer: while its service is busy a server looks on, and answers, after its spin and for as long as
// it ends. After each request it asks anew.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, ring.Size(1))
	var busy atomic.Bool
	var asked, refused atomic.Int64
	busy.Store(true)
	server, err := ring.NewServer(there, 1, 0, ring.Service{Handle: echo, Idle: func() bool {
		asked.Add(1)
		if !busy.Load() {
			refused.Add(1)
		}
		return busy.Load()
	}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ring.NewClient(here, 0, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		before := asked.Load()
		for asked.Load() < before+1000 {
			runtime.Gosched() // it looks on
		}
		if _, err := call(t.Context(), client, nil, nil); err != nil {
			t.Error(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Close()
	}()
	select {
	case <-ended:
		t.Error("the server ended while its service was busy")
	case <-time.After(10 * time.Millisecond):
	}
	busy.Store(false)
	<-ended
	if refused.Load() == 0 {
		t.Error("the server ended without asking whether its service is busy")
	}
}

func TestNotARing(t *testing.T) {
	t.Parallel()
	good, _ := shmtest.Twice(t, ring.Size(2))
	server, err := ring.NewServer(good, 2, 0, ring.Service{Handle: echo})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	for name, edit := range map[string]func(b []byte) []byte{
		"nothing":       func([]byte) []byte { return nil },
		"zeros":         func(b []byte) []byte { clear(b); return b },
		"cut":           func(b []byte) []byte { return b[:len(b)-1] },
		"a header only": func(b []byte) []byte { return b[:4096] },
		"no lanes":      func(b []byte) []byte { b[0x0c] = 0; return b },
		"many lanes":    func(b []byte) []byte { b[0x0c] = 65; return b },
		"version":       func(b []byte) []byte { b[0x08] = 2; return b },
	} {
		if _, err := ring.NewClient(edit(bytes.Clone(good)), 0, 0, nil); err == nil {
			t.Errorf("%s: taken for a ring", name)
		}
	}
	if _, err := ring.NewServer(make([]byte, 4096), 1, 0, ring.Service{Handle: echo}); err == nil {
		t.Error("a ring was made in too little memory")
	}
	if _, err := ring.NewServer(make([]byte, ring.Size(65)), 65, 0, ring.Service{Handle: echo}); err == nil {
		t.Error("a ring of 65 lanes was made")
	}
}

// TestAWildPeer writes random words all over the memory while calls go on: they may get wrong answers,
// or none, but all end in time, and nothing faults.
func TestAWildPeer(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, ring.Size(4))
	server, err := ring.NewServer(there, 4, 0, ring.Service{Handle: echo})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := ring.NewClient(here, 0, time.Minute, func([]byte) {})
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
				ring.Word(there, offset).Store(x)
			}
		}
	})
	for range 8 {
		callers.Go(func() {
			answer := make([]byte, ring.MaxAnswer)
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
	request, answer := []byte("x"), make([]byte, ring.MaxAnswer)
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
			request, answer := make([]byte, 16), make([]byte, ring.MaxAnswer)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), client, request, answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
