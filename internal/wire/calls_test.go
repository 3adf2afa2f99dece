package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// callee is a program whose functions are answer, on any worker.
type callee struct {
	producer *coretest.Producer
	cancel   chan struct{} // has one token for each call that was cancelled

	mu       sync.Mutex
	answer   func(r *calls.Request, a *calls.Answer) error
	segments map[uint32]string // what each begins with, and "w" if it can be written
}

// callable is the same program as a producer.
type callable struct {
	*coretest.Producer
	callee *callee
}

func (c callable) Callee() calls.Callee { return c.callee }

func (c *callee) program() callable { return callable{c.producer, c} }

func (c *callee) Worker() calls.Worker { return c }

func (c *callee) Close() {}

func (c *callee) Answer(r *calls.Request, a *calls.Answer) error {
	a.Kind = calls.Done
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	return answer(r, a)
}

// answers changes what the functions are.
func (c *callee) answers(answer func(r *calls.Request, a *calls.Answer) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

func (c *callee) Cancel() calls.State {
	c.cancel <- struct{}{}
	return calls.Interrupted
}

func (c *callee) Adopt(n uint32, files []*os.File, a calls.Adoption) error {
	var all strings.Builder
	for _, f := range files {
		text := make([]byte, 4)
		if _, err := f.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
			return &core.Error{Op: "adopt", Kind: core.ErrUnavailable, Err: err}
		}
		all.Write(text)
	}
	if a.Handle != nil {
		fmt.Fprintf(&all, " on a GPU: %T of %d", a.Handle, a.Handle.Extent())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.segments[n] = all.String()
	if a.Writable {
		c.segments[n] += "w"
	}
	return nil
}

func (c *callee) Forget(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.segments, n)
}

func (c *callee) segment(n uint32) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.segments[n]
}

func (c *callee) Outside(*calls.Argument) ([]byte, error) {
	return nil, errors.New("no message is long")
}

func (c *callee) Put([]byte) (l contract.Lease, err error) {
	return l, errors.New("no message is long")
}

func (c *callee) Release(ids ...contract.LeaseID) {
	_ = c.producer.Release(context.Background(), ids...)
}

func (c *callee) granted(t *testing.T, name string) contract.Lease {
	t.Helper()
	l, err := c.producer.Lease(t.Context(), name, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// noRoom is for messages that fit into a mailbox, and gives leases back.
type noRoom struct{ *callee }

func (noRoom) Put(context.Context, []byte) (a calls.Argument, done func(), err error) {
	return a, nil, errors.New("no message is long")
}

func (noRoom) Take(context.Context, contract.Lease) ([]byte, error) {
	return nil, errors.New("no message is long")
}

func (noRoom) Ended(ids []contract.LeaseID) []contract.LeaseID { return ids }

func newCallee(t *testing.T) *callee {
	t.Helper()
	return &callee{
		producer: coretest.NewProducer(t, coretest.Arrays()...), cancel: make(chan struct{}, 1),
		segments: make(map[uint32]string), answer: func(*calls.Request, *calls.Answer) error { return nil },
	}
}

// dialCalls connects a host to a program, and delivers what the host sends.
func dialCalls(t *testing.T, p contract.Producer) *wiretest.Link {
	t.Helper()
	var server *wire.Server
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	var delivering sync.WaitGroup
	t.Cleanup(delivering.Wait)
	return wiretest.Serve(t, func(side *fdpass.Conn, r grpc.ServiceRegistrar) {
		server = wire.NewServer(p, side)
		server.Register(r)
		delivering.Go(func() {
			for {
				msg, files, err := side.Recv()
				if err != nil {
					return
				}
				if len(files) > 0 && !server.Deliver(msg, files) {
					t.Errorf("the host sent %q with %d descriptors", msg, len(files))
				}
			}
		})
	}, wiretest.Options{Calls: calls.Settings{Workers: 2, Spin: time.Millisecond}})
}

func openCalls(t *testing.T, link *wiretest.Link, c *callee) *calls.Client {
	t.Helper()
	client, err := link.Client.OpenCalls(t.Context(), noRoom{c}, calls.Settings{Workers: 2, Spin: time.Millisecond})
	if err != nil || client == nil {
		t.Fatalf("OpenCalls = %v, %v", client, err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// TestCallsOverTheWire: arguments, leases and errors come as they were.
func TestCallsOverTheWire(t *testing.T) {
	t.Parallel()
	c := newCallee(t)
	client := openCalls(t, dialCalls(t, c.program()), c)
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{3, 5}, Strides: []int{4, -12}, Offset: 64})
	if err != nil {
		t.Fatal(err)
	}
	arguments := []calls.Argument{{Segment: 7, Word: 11, Layout: layout}, {Lease: 9, ReadOnly: true, Layout: layout}}
	same := func(got, want calls.Argument) bool {
		return got.Segment == want.Segment && got.Word == want.Word && got.Lease == want.Lease && got.ReadOnly == want.ReadOnly &&
			reflect.DeepEqual(got.Layout, want.Layout) && got.Held().Load() == want.Word
	}
	client.Held(11).Store(11) // the word itself arrives
	lease := c.granted(t, "samples")
	c.answers(func(r *calls.Request, a *calls.Answer) error {
		if r.Op != calls.OpCall || r.Target != 5 || r.Framework != "torch" || !slices.EqualFunc(r.Arrays, arguments, same) {
			return fmt.Errorf("the request is %+v", r)
		}
		a.Retained, a.Leases = 1, append(a.Leases, lease)
		a.Values = append([]byte("got "), r.Values...)
		return nil
	})
	var a calls.Answer
	r := &calls.Request{Op: calls.OpCall, Target: 5, Framework: "torch", Arrays: arguments, Values: []byte("values")}
	if err := client.Call(t.Context(), r, &a); err != nil {
		t.Fatal(err)
	}
	if string(a.Values) != "got values" || a.Retained != 1 || len(a.Leases) != 1 || a.Leases[0].ID != lease.ID || !reflect.DeepEqual(a.Leases[0].Layout, lease.Layout) {
		t.Errorf("the answer is %+v, of %+v", a, lease)
	}
	c.Release(lease.ID)
	for _, said := range []error{
		&core.Error{Op: "call", Object: "f", Kind: core.ErrNotFound, Err: errors.New("no f"), Remedy: "make one"},
		&core.Error{Op: "call", Kind: core.ErrPython, Err: &core.PythonError{Type: "ValueError", Message: "no", Traceback: "in f"}},
		errors.New("bare"),
	} {
		c.answers(func(*calls.Request, *calls.Answer) error { return said })
		err := client.Call(t.Context(), &calls.Request{Op: calls.OpValue}, &a)
		e, ours := errors.AsType[*core.Error](said)
		if !strings.Contains(err.Error(), said.Error()) || ours && !errors.Is(err, e.Kind) {
			t.Errorf("the error is %v, want %v", err, said)
		}
		if p, ok := errors.AsType[*core.PythonError](err); errors.Is(said, core.ErrPython) && (!ok || p.Traceback != "in f") {
			t.Errorf("the exception is %+v", p)
		}
	}
}

// TestCancelOverTheWire: a call whose context ends is cancelled on its worker.
func TestCancelOverTheWire(t *testing.T) {
	t.Parallel()
	c := newCallee(t)
	link := dialCalls(t, c.program())
	client := openCalls(t, link, c)
	ctx, cancel := context.WithCancel(t.Context())
	c.answers(func(*calls.Request, *calls.Answer) error {
		cancel()
		<-c.cancel
		return &core.Error{Op: "call", Kind: core.ErrPython, Err: errors.New("it was interrupted")}
	})
	err := client.Call(ctx, &calls.Request{Op: calls.OpCall}, new(calls.Answer))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted by an exception") {
		t.Errorf("a call whose context ends = %v", err)
	}
	for _, tc := range []struct {
		worker int
		number uint64
		want   calls.State
	}{{0, 1, calls.Finished}, {0, 100, calls.NeverBegan}} {
		if got, err := link.Client.Cancel(t.Context(), tc.worker, tc.number); got != tc.want || err != nil {
			t.Errorf("Cancel of call %d = %v, %v; want %v", tc.number, got, err, tc.want)
		}
	}
	_, err = link.Client.Cancel(t.Context(), 1, 1)
	wantRemote(t, "a worker that does not serve", err, core.ErrProtocol, "call 1 of worker 1")
	_, err = link.Client.Cancel(t.Context(), 0, 0)
	wantRemote(t, "no call", err, core.ErrProtocol, "call 0 of worker 0")
	wantRemote(t, "too many workers", link.Client.Workers(t.Context(), 3), core.ErrProtocol, "3 workers of 2")
}

// TestNoCalls: who asks a program that has no functions, or one that was not told of calls, is refused.
func TestNoCalls(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]*wiretest.Link{
		"no functions": wiretest.Dial(t, newOdd(t), wiretest.Options{Calls: calls.Settings{Workers: 1}}),
		"no wish":      wiretest.Dial(t, newCallee(t).program(), wiretest.Options{}),
	} {
		if client, err := link.Client.OpenCalls(t.Context(), noRoom{}, calls.Settings{Workers: 1}); client != nil || err != nil {
			t.Errorf("%s: OpenCalls = %v, %v", name, client, err)
		}
		wantRemote(t, name, link.Client.Workers(t.Context(), 1), core.ErrUnsupported, "no calls are served")
		wantRemote(t, name, link.Client.Forget(t.Context(), 1), core.ErrUnsupported, "no calls are served")
		_, err := link.Client.Cancel(t.Context(), 0, 1)
		wantRemote(t, name, err, core.ErrUnsupported, "no calls are served")
	}
}

// TestCallSettings refuses what no host of ours wishes.
func TestCallSettings(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*pb.CallSettings{
		"no workers":       {},
		"too many workers": {Workers: calls.MaxWorkers + calls.MaxLanes + 1},
		"workers, wrapped": {Workers: 1<<32 - 1},
		"a negative spin":  {Workers: 1, Spin: -1},
		"an endless spin":  {Workers: 1, Spin: int64(time.Hour)},
	} {
		raw := pb.NewProducerServiceClient(wiretest.Dial(t, newCallee(t).program(), wiretest.Options{Closed: true}).Conn)
		_, err := raw.Open(t.Context(), &pb.OpenRequest{Settings: &pb.Settings{Calls: s}})
		if status.Code(err) != codes.Internal {
			t.Errorf("%s: %v; want a violation of the protocol", name, err)
		}
	}
}

// TestCallMemoryThatLies: memory that is not what the program has announced is a breach of the protocol.
func TestCallMemoryThatLies(t *testing.T) {
	t.Parallel()
	const segment = uint64(calls.Segment)
	honest := pb.Calls{Segment: segment, Size: calls.Size(2), Workers: 2}
	for name, lie := range map[string]struct {
		announced *pb.Calls
		size      int64 // of the file
	}{
		"honest":           {&honest, honest.GetSize()},
		"no workers":       {&pb.Calls{Segment: segment, Size: calls.Size(0)}, calls.Size(2)},
		"too many workers": {&pb.Calls{Segment: segment, Size: calls.Size(129), Workers: 129}, calls.Size(129)},
		"workers, wrapped": {&pb.Calls{Segment: segment, Size: calls.Size(2), Workers: 1<<32 - 1}, calls.Size(2)},
		"another size":     {&pb.Calls{Segment: segment, Size: calls.Size(2) + 1, Workers: 2}, calls.Size(2) + 1},
		"a negative size":  {&pb.Calls{Segment: segment, Size: -1, Workers: 2}, calls.Size(2)},
		"too small a file": {&honest, calls.Size(1)},
	} {
		s := &scripted{info: &pb.Info{}, calls: lie.announced, descriptor: func(side *fdpass.Conn, req *pb.DescriptorRequest) error {
			f, err := shm.Create("calls", lie.size)
			if err != nil {
				return err
			}
			defer f.Close()
			return side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, req.GetToken()), f)
		}}
		client, err := s.dial(t, wire.ClientOptions{}).Client.OpenCalls(t.Context(), noRoom{}, calls.Settings{Workers: 1})
		if name == "honest" {
			if err != nil || client.Close() != nil {
				t.Errorf("honest memory: %v", err)
			}
			continue
		}
		if client != nil || !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s: %v, %v; want ErrProtocol", name, client, err)
		}
	}
}
