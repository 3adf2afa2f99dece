package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// patience bounds what must happen soon.
const patience = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClientConforms(t *testing.T) {
	t.Parallel()
	coretest.Conform(t, func(t *testing.T) contract.Producer {
		return wiretest.Connect(t, coretest.NewProducer(t, coretest.Arrays()...))
	})
}

// goodLease is a lease for a request that does not want to write.
func goodLease(id uint64) *pb.Lease {
	return &pb.Lease{
		Id: id,
		Layout: &pb.Layout{
			Dtype:  &pb.DType{Code: 1, Bits: 8, Lanes: 1},
			Device: &pb.Device{Kind: pb.DeviceKind_DEVICE_KIND_CPU}, Shape: []int64{16},
		},
		Handle: &pb.Handle{Kind: &pb.Handle_Segment{Segment: &pb.Segment{Id: 1, Size: 16}}},
		Fence:  &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}},
		Route:  pb.Route_ROUTE_MAPPED_FILE,
	}
}

// TestRefusedLeaseIsReleased checks that a lease that the host cannot accept does not stay.
func TestRefusedLeaseIsReleased(t *testing.T) {
	t.Parallel()
	token := make(chan uint64, 1)
	server := &scripted{lease: func(_ context.Context, req *pb.LeaseRequest) (*pb.Lease, error) {
		token <- req.GetToken()
		lease := goodLease(7)
		lease.Layout.Shape[0] = 17 // one byte more than the segment has
		return lease, nil
	}}
	link := server.dial(t, wire.ClientOptions{Program: "camera"})
	_, err := link.Client.Lease(t.Context(), "x", contract.Request{})
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrProtocol) || e.Object != "x" || e.Program != "camera" {
		t.Fatalf("Lease = %v; want ErrProtocol that names camera/x", err)
	}
	if got, want := recv(t, server.released).GetTokens(), []uint64{recv(t, token)}; !slices.Equal(got, want) {
		t.Errorf("released tokens %v, want %v", got, want)
	}
}

// slow is a producer whose Lease begins, waits, and is granted whatever becomes of the context.
type slow struct {
	*coretest.Producer
	began, proceed chan struct{}
}

func (s slow) Lease(_ context.Context, name string, req contract.Request) (contract.Lease, error) {
	s.began <- struct{}{}
	<-s.proceed
	return s.Producer.Lease(context.Background(), name, req)
}

// TestAbandonedLeaseIsReleased gives up calls while the producer is about to grant them.
func TestAbandonedLeaseIsReleased(t *testing.T) {
	t.Parallel()
	p := slow{coretest.NewProducer(t, coretest.Arrays()...), make(chan struct{}), make(chan struct{})}
	client := wiretest.Connect(t, p)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var call sync.WaitGroup
		call.Go(func() {
			if _, err := client.Lease(ctx, "samples", contract.Request{}); !errors.Is(err, context.Canceled) {
				t.Errorf("Lease = %v; want context.Canceled", err)
			}
		})
		recv(t, p.began)
		cancel()
		call.Wait() // or the answer may come first, and the lease is the caller's
		p.proceed <- struct{}{}
	}
	eventually(t, func() error { return leases(t, p, 0) })
}

// TestAnswerNobodyReadsIsReleased cancels calls at random moments around the answer: the lease must
// be either the caller's or nobody's.
func TestAnswerNobodyReadsIsReleased(t *testing.T) {
	t.Parallel()
	p := coretest.NewProducer(t, coretest.Arrays()...)
	client := wiretest.Connect(t, p)
	granted := 0
	for i := range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*2)*time.Microsecond)
		l, err := client.Lease(ctx, "samples", contract.Request{})
		cancel()
		if err == nil {
			granted++
			if err := client.Release(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 300 calls were answered in time", granted)
	eventually(t, func() error { return leases(t, p, 0) })
}

func leases(t *testing.T, p contract.Producer, want int) error {
	t.Helper()
	info, err := p.Info(t.Context())
	if err == nil && info.Leases != want {
		err = fmt.Errorf("%d leases stand, want %d", info.Leases, want)
	}
	return err
}

func TestReleaseOfManyLeases(t *testing.T) {
	t.Parallel()
	p := coretest.NewProducer(t, coretest.Arrays()...)
	client := wiretest.Connect(t, p)
	ids := make([]contract.LeaseID, 150_000)
	for i := range ids {
		ids[i] = contract.LeaseID(1_000_000 + i)
	}
	l, err := client.Lease(t.Context(), "scalar", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	ids[len(ids)-1] = l.ID
	if err := client.Release(t.Context(), ids...); err != nil {
		t.Fatal(err)
	}
	if err := leases(t, p, 0); err != nil {
		t.Error(err)
	}
}

func TestHostileDescriptors(t *testing.T) {
	t.Parallel()
	message := func(token uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{'D'}, token) }
	for name, c := range map[string]struct {
		answer func(side *fdpass.Conn, token uint64, f *os.File) error
		slow   bool
	}{
		"never comes": {func(*fdpass.Conn, uint64, *os.File) error { return nil }, true},
		"other token": {func(s *fdpass.Conn, token uint64, f *os.File) error { return s.Send(message(token+1), f) }, true},
		"short token": {func(s *fdpass.Conn, token uint64, f *os.File) error { return s.Send(message(token)[:8], f) }, true},
		"no file":     {func(s *fdpass.Conn, token uint64, _ *os.File) error { return s.Send(message(token)) }, false},
		"two files":   {func(s *fdpass.Conn, token uint64, f *os.File) error { return s.Send(message(token), f, f) }, false},
		"with a file in a status": {func(s *fdpass.Conn, token uint64, f *os.File) error {
			return errors.Join(s.Send([]byte(`{"stage":"x"}`), f), s.Send(message(token)))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			server := &scripted{descriptor: func(side *fdpass.Conn, req *pb.DescriptorRequest) error {
				return c.answer(side, req.GetToken(), w)
			}}
			link := server.dial(t, wire.ClientOptions{})
			start := time.Now()
			f, err := link.Client.Descriptor(t.Context(), 1, false)
			if f != nil || !errors.Is(err, core.ErrProtocol) {
				t.Errorf("Descriptor = %v, %v; want ErrProtocol", f, err)
			}
			if took := time.Since(start); c.slow != (took > time.Second) || took > patience {
				t.Errorf("it took %v", took)
			}
			mustEnd(t, r, w)
		})
	}
}

// mustEnd closes w and checks that no other descriptor of that pipe's end is open in this process.
func mustEnd(t *testing.T, r, w *os.File) {
	t.Helper()
	if err := errors.Join(w.Close(), r.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a descriptor stays open: %v", err)
	}
}

// TestLateDescriptorIsClosed sends the descriptor after the host has given up.
func TestLateDescriptorIsClosed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	asked := make(chan uint64, 1)
	proceed := make(chan struct{})
	server := &scripted{descriptor: func(_ *fdpass.Conn, req *pb.DescriptorRequest) error {
		asked <- req.GetToken()
		<-proceed
		return nil
	}}
	link := server.dial(t, wire.ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err = link.Client.Descriptor(ctx, 1, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Descriptor = %v; want context.Canceled", err)
	}
	if err := server.side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, 1), w); err != nil {
		t.Fatal(err)
	}
	close(proceed)
	mustEnd(t, r, w)
}

func TestHostileListings(t *testing.T) {
	t.Parallel()
	good := &pb.Entry{Name: "x", Layout: goodLease(1).GetLayout()}
	for name, c := range map[string]struct {
		entries func(send func(*pb.ArraysResponse) error) error
		count   int
	}{
		"a bad entry": {func(send func(*pb.ArraysResponse) error) error {
			return send(&pb.ArraysResponse{Entries: []*pb.Entry{good, {Name: "y"}, good}})
		}, 1},
		"a huge message": {func(send func(*pb.ArraysResponse) error) error {
			return send(&pb.ArraysResponse{Entries: []*pb.Entry{{Name: string(make([]byte, 20<<20))}}})
		}, 0},
		"no end": {func(send func(*pb.ArraysResponse) error) error {
			batch := &pb.ArraysResponse{Entries: slices.Repeat([]*pb.Entry{{Error: &pb.ErrorInfo{}}}, 1<<18)}
			for {
				if err := send(batch); err != nil {
					return err
				}
			}
		}, 1 << 20},
	} {
		server := &scripted{entries: c.entries}
		link := server.dial(t, wire.ClientOptions{})
		count := 0
		var last error
		for _, err := range link.Client.Arrays(t.Context()) {
			if last = err; err == nil {
				count++
			}
		}
		if !errors.Is(last, core.ErrProtocol) || count != c.count {
			t.Errorf("%s: %d entries, then %v; want %d, then ErrProtocol", name, count, last, c.count)
		}
	}
}

func TestHostileInfoIsAProtocolError(t *testing.T) {
	t.Parallel()
	server := &scripted{info: &pb.Info{Pid: -1}}
	if _, err := server.dial(t, wire.ClientOptions{}).Client.Info(t.Context()); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("Info = %v; want ErrProtocol", err)
	}
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func recv[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came within %v", patience)
		panic("unreachable")
	}
}
