package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a codec for tests: a lease is its ID, a layout is its number of bytes, and an error is its text.
type plain struct{}

func (plain) Append(b []byte, l *contract.Lease) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(b, uint64(l.ID)), nil
}

func (p plain) Lease(b []byte, _ contract.Request) (contract.Lease, error) {
	if len(b) != 8 {
		return contract.Lease{}, errors.New("no lease")
	}
	return contract.Lease{ID: p.ID(b)}, nil
}

func (plain) ID(b []byte) contract.LeaseID {
	if len(b) != 8 {
		return 0
	}
	return contract.LeaseID(binary.LittleEndian.Uint64(b))
}

func (plain) AppendLayout(b []byte, l core.Layout) ([]byte, error) {
	return binary.LittleEndian.AppendUint32(b, uint32(l.NBytes())), nil
}

func (plain) Layout(b []byte) (core.Layout, error) {
	if len(b) != 4 {
		return core.Layout{}, errors.New("no layout")
	}
	return core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{int(binary.LittleEndian.Uint32(b))}})
}

func (plain) AppendError(b []byte, err error) []byte { return append(b, err.Error()...) }
func (plain) Error(b []byte) error                   { return errors.New(string(b)) }

// world is a program that answers with what it was sent, and the host's way to it.
type world struct {
	server *Server
	client *Client

	mu       sync.Mutex
	outside  map[uint32][]byte // messages in the host's memory
	put      map[contract.LeaseID][]byte
	released []contract.LeaseID
	ended    []contract.LeaseID // that the next requests end
	last     uint32
	workers  atomic.Int64
	asked    atomic.Int64
	over     atomic.Int64
	release  chan struct{}     // ends what blocks
	start    func(n int) error // is asked before workers are started; nil: nobody is
	begun    chan struct{}
	wrap     func(e *echo) Worker
}

func newWorld(t *testing.T, workers int) *world {
	t.Helper()
	w := &world{
		outside: make(map[uint32][]byte), put: make(map[contract.LeaseID][]byte),
		release: make(chan struct{}), begun: make(chan struct{}, 64), wrap: func(e *echo) Worker { return e },
	}
	var err error
	if w.server, err = NewServer(w, plain{}, Settings{Workers: workers, Spin: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	file, err := w.server.Open(Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if w.client, err = NewClient(file, w.server.Memory(), plain{}, w, room{w}, Settings{Workers: workers, Spin: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.client.Close(), w.client.Close(), w.server.Close(), w.server.Close()); err != nil {
			t.Error(err)
		}
		if asked, over := w.asked.Load(), w.over.Load(); asked != over {
			t.Errorf("%d requests were over %d times", asked, over)
		}
	})
	return w
}

// Workers implements Remote.
func (w *world) Workers(_ context.Context, n int) error {
	if w.start != nil {
		if err := w.start(n); err != nil {
			return err
		}
	}
	return w.server.Start(n)
}

// Cancel implements Remote.
func (w *world) Cancel(_ context.Context, worker int, number uint64) (State, error) {
	return w.server.Cancel(worker, number)
}

// room is the host's.
type room struct{ *world }

func (r room) Put(_ context.Context, message []byte) (Argument, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	n := r.last
	r.outside[n] = bytes.Clone(message)
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{len(message)}})
	return Argument{Segment: n, Layout: l}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.outside, n)
	}, err
}

func (r room) Take(_ context.Context, l contract.Lease) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.put[l.ID]
	delete(r.put, l.ID)
	return b, nil
}

func (r room) Ended(ids []contract.LeaseID) []contract.LeaseID {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.ended), MaxEnded)
	ids = append(ids, r.ended[:n]...)
	r.ended = r.ended[n:]
	return ids
}

func (r room) Release(ids ...contract.LeaseID) { r.world.Release(ids...) }

// Worker implements Callee.
func (w *world) Worker() Worker {
	w.workers.Add(1)
	return w.wrap(&echo{world: w, cancel: make(chan struct{}, 1)})
}

func (*world) Adopt(uint32, []*os.File, Adoption) error { return nil }
func (*world) Forget(uint32)                            {}
func (*world) Close()                                   {}

func (w *world) Outside(a *Argument) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.outside[a.Segment]), nil
}

func (w *world) Put(answer []byte) (contract.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := contract.LeaseID(1000 + len(w.put))
	w.put[id] = bytes.Clone(answer)
	return contract.Lease{ID: id}, nil
}

func (w *world) Release(ids ...contract.LeaseID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.released = append(w.released, ids...)
}

// echo answers with the values; "block" waits until it is cancelled, "stuck" also then, until the world releases it.
type echo struct {
	*world
	cancel chan struct{}
}

func (e *echo) Answer(r *Request, a *Answer) error {
	e.Release(r.Ended...)
	switch string(r.Values) {
	case "fail":
		return errors.New("failed")
	case "block":
		e.begun <- struct{}{}
		select {
		case <-e.cancel:
			return errors.New("interrupted")
		case <-e.release:
		}
	case "stuck":
		e.begun <- struct{}{}
		<-e.release
		a.Leases = append(a.Leases, contract.Lease{ID: 77})
	}
	a.Kind, a.Target, a.Retained = Done, r.Target+1, uint32(len(r.Arrays))
	a.Values = bytes.Clone(r.Values)
	return nil
}

func (e *echo) Cancel() State {
	e.cancel <- struct{}{}
	return Interrupted
}

func (w *world) call(ctx context.Context, text string) (Answer, error) {
	var a Answer
	var overs atomic.Int64
	w.asked.Add(1)
	over := func() { overs.Add(1); w.over.Add(1) }
	err := w.client.Call(ctx, &Request{Op: OpCall, Target: 4, Values: []byte(text), Over: over}, &a)
	if n := overs.Load(); n == 0 && err == nil || n == 1 && err != nil && strings.Contains(err.Error(), "still runs") {
		return a, fmt.Errorf("over %d times when the call had returned: %w", n, err)
	}
	return a, err
}

func TestCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	for _, text := range []string{"", "a", strings.Repeat("x", 20000), strings.Repeat("y", 1<<20)} {
		a, err := w.call(t.Context(), text)
		if err != nil || a.Kind != Done || a.Target != 5 || string(a.Values) != text {
			t.Errorf("a call with %d bytes = %v with %d bytes, %v", len(text), a.Kind, len(a.Values), err)
		}
	}
	if len(w.outside) != 0 || len(w.put) != 0 {
		t.Errorf("%d requests and %d answers stayed in memory of their own", len(w.outside), len(w.put))
	}
	if _, err := w.call(t.Context(), "fail"); err == nil || err.Error() != "failed" {
		t.Errorf("a call that fails = %v", err)
	}
	if n := w.workers.Load(); n != 1 {
		t.Errorf("one caller used %d workers", n)
	}
}

// TestManyCallers: more callers than workers, and each gets its own answer.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	var callers sync.WaitGroup
	for i := range 12 {
		callers.Go(func() {
			text := strings.Repeat("z", i+1)
			for range 200 {
				if a, err := w.call(t.Context(), text); err != nil || string(a.Values) != text {
					t.Errorf("caller %d got %q, %v", i, a.Values, err)
					return
				}
			}
		})
	}
	callers.Wait()
	if n := w.workers.Load(); n < 1 || n > 3 {
		t.Errorf("%d workers of 3", n)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	for text, says := range map[string]string{"block": "interrupted", "stuck": "still runs"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-w.begun
			cancel()
		}()
		if _, err := w.call(ctx, text); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s, cancelled = %v, want that it %s", text, err, says)
		}
	}
	if a, err := w.call(t.Context(), "b"); err != nil || string(a.Values) != "b" { // on the other worker
		t.Errorf("beside a call that is stuck: %q, %v", a.Values, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	blocked := make(chan error, 1)
	go func() {
		_, err := w.call(t.Context(), "block")
		blocked <- err
	}()
	<-w.begun
	if _, err := w.call(ctx, "c"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "never will") {
		t.Errorf("a call without a worker = %v, want that it never begins", err)
	}
	close(w.release)
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		released := len(w.released) == 1 && w.released[0] == 77
		w.mu.Unlock()
		if released {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the lease in an answer that nobody waited for was not released")
		}
	}
	for range 4 { // both workers are back
		if _, err := w.call(t.Context(), "d"); err != nil {
			t.Error(err)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.call(t.Context(), "block")
			done <- err
		}()
	}
	<-w.begun
	closed := make(chan error)
	go func() { closed <- w.client.Close() }()
	for range 2 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("a call of a client that is closed = %v, want ErrClosed", err)
		}
	}
	close(w.release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := w.call(t.Context(), "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close = %v, want ErrClosed", err)
	}
}

// TestServerThatIsClosed: a host whose program serves no more is told so, whoever was first.
func TestServerThatIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	if _, err := w.call(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call(t.Context(), "b"); !errors.Is(err, ErrClosed) {
		t.Errorf("a call of a server that is closed = %v, want ErrClosed", err)
	}
	if err := w.server.Start(2); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Start of a server that is closed = %v, want ErrUnavailable", err)
	}
}

func TestHostileMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	file, err := w.server.Open(Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, m := range []Memory{{}, {Mailboxes: 1}, {Mailboxes: 129, Size: Size(129)}, {Mailboxes: 2, Size: Size(1)}, {Mailboxes: 2, Size: Size(2)}} {
		if c, err := NewClient(file, m, plain{}, w, room{w}, Settings{}); err == nil {
			t.Errorf("memory %+v was taken", m)
			_ = c.Close()
		}
	}
	for _, err := range []error{w.server.Start(2), w.server.Start(-1), w.server.Adopt(MaxSegments, []*os.File{file}, Adoption{Size: 1})} {
		if !errors.Is(err, core.ErrProtocol) {
			t.Errorf("what cannot be = %v, want ErrProtocol", err)
		}
	}
	if err := w.server.Start(1); err != nil {
		t.Fatal(err)
	}
	for _, worker := range []int{-1, 0, 7} { // nothing runs on the first
		if _, err := w.server.Cancel(worker, 0); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("Cancel of no call on worker %d = %v", worker, err)
		}
	}
}
