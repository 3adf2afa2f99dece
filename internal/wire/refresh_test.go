package wire_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// refresher is a producer that looks at leases again as the test says.
type refresher struct {
	*coretest.Producer
	refresh func(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error)
}

func (r refresher) Refresh(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
	return r.refresh(ctx, id)
}

// again is what a producer does that grants another lease on the same array.
func (r refresher) again(context.Context, contract.LeaseID) (contract.Lease, bool, error) {
	l, err := r.Lease(context.Background(), "samples", contract.Request{})
	return l, true, err
}

// TestRefresh: what the producer finds is what the host hears.
func TestRefresh(t *testing.T) {
	t.Parallel()
	p := refresher{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
	word := contract.CUDAWord{Page: 3, Size: 4096, Offset: 8, Value: 7}
	cause := &core.Error{Op: "refresh", Object: "samples", Kind: core.ErrNotFound, Err: errors.New("it is gone"), Remedy: "look"}
	found := make(chan contract.Lease, 1)
	p.refresh = func(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
		switch id {
		case 1:
			return contract.Lease{ID: 99, Fence: contract.Ready{}}, false, nil
		case 2:
			return contract.Lease{Fence: word}, false, nil
		case 3:
			l, changed, err := p.again(ctx, id)
			l.Version, l.Published = 5, time.Unix(7, 8)
			found <- l
			return l, changed, err
		default:
			return contract.Lease{}, false, cause
		}
	}
	client := wiretest.Connect(t, p)
	for id, fence := range map[contract.LeaseID]contract.Fence{1: contract.Ready{}, 2: word} {
		l, changed, err := client.Refresh(t.Context(), id)
		if err != nil || changed || l.ID != id || l.Fence != fence {
			t.Errorf("Refresh(%d) = %+v, %v, %v; want the same lease with %v", id, l, changed, err, fence)
		}
	}
	l, changed, err := client.Refresh(t.Context(), 3)
	want := <-found
	if err != nil || !changed || l.ID != want.ID || l.Handle != want.Handle || !l.Layout.Equal(want.Layout) ||
		l.Version != 5 || !l.Published.Equal(want.Published) {
		t.Errorf("Refresh = %+v, %v, %v; want %+v", l, changed, err, want)
	}
	if err := errors.Join(leases(t, p, 1), client.Release(t.Context(), l.ID), leases(t, p, 0)); err != nil {
		t.Error(err)
	}
	_, _, err = client.Refresh(t.Context(), 4)
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrNotFound) || !e.Remote || e.Object != "samples" || e.Remedy != "look" {
		t.Errorf("Refresh = %v, want %v", err, cause)
	}
}

// TestRefreshOfNoRefresher: the host hears from itself that a producer looks at nothing again.
func TestRefreshOfNoRefresher(t *testing.T) {
	t.Parallel()
	client := wiretest.Connect(t, coretest.NewProducer(t, coretest.Arrays()...))
	_, changed, err := client.Refresh(t.Context(), 1)
	if e, ok := errors.AsType[*core.Error](err); changed || !ok || !errors.Is(err, core.ErrUnsupported) || e.Remote {
		t.Errorf("Refresh = %v, %v; want ErrUnsupported", changed, err)
	}
	link := wiretest.Dial(t, coretest.NewProducer(t), wiretest.Options{})
	raw := pb.NewProducerServiceClient(link.Conn)
	if _, err := raw.Refresh(t.Context(), &pb.RefreshRequest{Lease: 1, Token: 2}); err == nil {
		t.Error("a producer that cannot was asked")
	}
	link = wiretest.Dial(t, refresher{Producer: coretest.NewProducer(t)}, wiretest.Options{Closed: true})
	raw = pb.NewProducerServiceClient(link.Conn)
	if _, err := raw.Refresh(t.Context(), &pb.RefreshRequest{Lease: 1, Token: 2}); err == nil {
		t.Error("a producer was asked before its session was open")
	}
}

// TestRefreshThatIsGivenUp: a lease that the producer is about to grant then does not stay.
func TestRefreshThatIsGivenUp(t *testing.T) {
	t.Parallel()
	began, proceed := make(chan struct{}), make(chan struct{})
	p := refresher{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
	p.refresh = func(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
		began <- struct{}{}
		<-proceed
		return p.again(ctx, id)
	}
	client := wiretest.Connect(t, p)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, _, err := client.Refresh(ctx, 1)
			ended <- err
		}()
		recv(t, began)
		cancel()
		if err := recv(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Refresh = %v; want context.Canceled", err)
		}
		proceed <- struct{}{}
	}
	eventually(t, func() error { return leases(t, p, 0) })
}

// TestRefreshThatNobodyReads ends calls at random moments around the answer: the new lease is either the
// caller's or nobody's.
func TestRefreshThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := refresher{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
	p.refresh = p.again
	client := wiretest.Connect(t, p)
	for i := range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*2)*time.Microsecond)
		l, changed, err := client.Refresh(ctx, 1)
		cancel()
		if err == nil && changed {
			err = client.Release(t.Context(), l.ID)
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { return leases(t, p, 0) })
}

// TestHostileRefreshes: an answer that cannot be is the error that says so, and what was granted does not stay.
func TestHostileRefreshes(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]*pb.RefreshResponse{
		"nothing":          {},
		"an empty fence":   {Fence: &pb.Fence{}},
		"a fence's word":   {Fence: &pb.Fence{Kind: &pb.Fence_CudaWord{CudaWord: &pb.CUDAWord{Page: 1, Size: 4, Offset: 4}}}},
		"an empty lease":   {Lease: &pb.Lease{}},
		"a lease, no ID":   {Lease: goodLease(0), Fence: goodLease(1).GetFence()},
		"an unknown route": {Lease: func() *pb.Lease { l := goodLease(7); l.Route = 99; return l }()},
	} {
		token := make(chan uint64, 1)
		server := &scripted{refresh: func(req *pb.RefreshRequest) *pb.RefreshResponse {
			token <- req.GetToken()
			return answer
		}}
		link := server.dial(t, wire.ClientOptions{Program: "camera"})
		l, changed, err := link.Client.Refresh(t.Context(), 5)
		if !errors.Is(err, core.ErrProtocol) || changed {
			t.Errorf("%s: Refresh = %+v, %v, %v; want ErrProtocol", name, l, changed, err)
		}
		if got, want := recv(t, server.released).GetTokens(), []uint64{recv(t, token)}; !slices.Equal(got, want) {
			t.Errorf("%s: released tokens %v, want %v", name, got, want)
		}
	}
}

// TestRefreshesThatCannotCross: what no message can hold is the producer's mistake, and a lease that was granted for it
// does not stay.
func TestRefreshesThatCannotCross(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changed bool
		change  func(*contract.Lease)
	}{
		"the same lease without a fence": {false, func(l *contract.Lease) { l.Fence = nil }},
		"another without a fence":        {true, func(l *contract.Lease) { l.Fence = nil }},
		"another without a route":        {true, func(l *contract.Lease) { l.Route = "" }},
		"another without a layout":       {true, func(l *contract.Lease) { l.Layout = core.Layout{} }},
	} {
		p := refresher{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
		p.refresh = func(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
			l := contract.Lease{ID: id, Fence: contract.Ready{}}
			if c.changed {
				granted, _, err := p.again(ctx, id)
				if err != nil {
					return granted, false, err
				}
				l = granted
			}
			c.change(&l)
			return l, c.changed, nil
		}
		client := wiretest.Connect(t, p)
		if l, _, err := client.Refresh(t.Context(), 1); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s: Refresh = %+v, %v; want ErrProtocol", name, l, err)
		}
		eventually(t, func() error { return leases(t, p, 0) })
		if _, err := client.Info(t.Context()); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

// TestTokenOfARefresh: a host that does not know what became of a refresh gives back what was granted by the call's token,
// and only that.
func TestTokenOfARefresh(t *testing.T) {
	t.Parallel()
	p := refresher{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
	p.refresh = p.again
	link := wiretest.Dial(t, p, wiretest.Options{})
	raw := pb.NewProducerServiceClient(link.Conn)
	release := func(tokens ...uint64) {
		t.Helper()
		if _, err := raw.Release(t.Context(), &pb.ReleaseRequest{Tokens: tokens}); err != nil {
			t.Error(err)
		}
	}
	first, err := raw.Lease(t.Context(), &pb.LeaseRequest{Name: "samples", Token: 1})
	if err != nil {
		t.Fatal(err)
	}
	second, err := raw.Refresh(t.Context(), &pb.RefreshRequest{Lease: first.GetLease().GetId(), Token: 2})
	if err != nil || second.GetLease().GetId() == first.GetLease().GetId() || second.GetFence() != nil {
		t.Fatalf("Refresh = %v, %v", second, err)
	}
	if _, err := raw.Refresh(t.Context(), &pb.RefreshRequest{Lease: 1, Token: 2}); err == nil {
		t.Error("a token stands for two refreshes")
	}
	for _, step := range []struct {
		tokens []uint64
		left   int
	}{{nil, 2}, {[]uint64{3}, 2}, {[]uint64{2}, 1}, {[]uint64{2}, 1}, {[]uint64{1, 2, 3}, 0}} {
		release(step.tokens...)
		if err := leases(t, p, step.left); err != nil {
			t.Errorf("after the tokens %v: %v", step.tokens, err)
		}
	}
}
