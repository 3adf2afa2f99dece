package wire_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// odd is a producer that does what the test says instead of what is right.
type odd struct {
	*coretest.Producer
	info       func() (contract.Info, error)
	arrays     iter.Seq2[contract.Entry, error]
	change     func(*contract.Lease)
	descriptor func() (*os.File, error)
}

func (o odd) Info(ctx context.Context) (contract.Info, error) {
	if o.info == nil {
		return o.Producer.Info(ctx)
	}
	return o.info()
}

func (o odd) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	if o.arrays == nil {
		return o.Producer.Arrays(ctx)
	}
	return o.arrays
}

func (o odd) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	l, err := o.Producer.Lease(ctx, name, req)
	if err == nil && o.change != nil {
		o.change(&l)
	}
	return l, err
}

func (o odd) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	if o.descriptor == nil {
		return o.Producer.Descriptor(ctx, id, writable)
	}
	return o.descriptor()
}

func newOdd(t *testing.T) odd {
	t.Helper()
	return odd{Producer: coretest.NewProducer(t, coretest.Arrays()...)}
}

// wantRemote holds what came of a call that the program's side refused.
func wantRemote(t *testing.T, what string, err, kind error, text string) {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok || !errors.Is(err, kind) || !e.Remote || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; want %v of the program's side with %q", what, err, kind, text)
	}
}

// TestInfoThatFails: a producer that cannot say what it is fails the call, and when the session is to be opened, the
// session.
func TestInfoThatFails(t *testing.T) {
	t.Parallel()
	effectless := contract.Info{Frameworks: []contract.Framework{{Name: "numpy", Quirks: []contract.Quirk{{ID: "numpy.q"}}}}}
	for name, c := range map[string]struct {
		info contract.Info
		err  error
		kind error
		text string
	}{
		"an error":         {err: &core.Error{Op: "info", Kind: core.ErrPython, Err: errors.New("no interpreter")}, kind: core.ErrPython, text: "no interpreter"},
		"without category": {err: errors.New("something"), kind: core.ErrProtocol, text: "error without a category: something"},
		"a quirk that has no effect": {
			info: effectless, kind: core.ErrProtocol, text: "numpy.q",
		},
	} {
		p := newOdd(t)
		p.info = func() (contract.Info, error) { return c.info, c.err }
		link := wiretest.Dial(t, p, wiretest.Options{Closed: true})
		_, err := link.Client.Open(t.Context(), contract.Settings{}, wire.Wish{})
		wantRemote(t, name, err, c.kind, c.text)
		if _, err := link.Client.Lease(t.Context(), "samples", contract.Request{}); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s: the session is open all the same: %v", name, err)
		}

		failing := false
		p.info = func() (contract.Info, error) {
			if failing {
				return c.info, c.err
			}
			return contract.Info{}, nil
		}
		client := wiretest.Connect(t, p)
		failing = true
		_, err = client.Info(t.Context())
		wantRemote(t, name+", later", err, c.kind, c.text)
	}
}

// TestListingsThatFail: what was listed before an error arrives, and then the error, once.
func TestListingsThatFail(t *testing.T) {
	t.Parallel()
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	gone := &core.Error{Op: "list", Kind: core.ErrUnavailable, Err: errors.New("the interpreter ends")}
	refused := &core.Error{Op: "list", Object: "o", Kind: core.ErrDType, Remedy: "publish a copy"}
	good := func(i int) contract.Entry {
		return contract.Entry{Name: fmt.Sprintf("a%05d", i), Framework: "numpy", Layout: layout}
	}
	for name, c := range map[string]struct {
		good int            // so many entries, and then
		last contract.Entry // this one, or
		err  error          // this
		kind error          // of what the listing ends with
		text string
	}{
		"nothing":                        {},
		"one full batch":                 {good: 64},
		"more than a batch":              {good: 65},
		"an error at once":               {err: gone, kind: core.ErrUnavailable, text: "the interpreter ends"},
		"an error behind a few":          {good: 3, err: gone, kind: core.ErrUnavailable, text: "the interpreter ends"},
		"an error behind a batch":        {good: 64, err: gone, kind: core.ErrUnavailable},
		"an error behind many":           {good: 1000, err: gone, kind: core.ErrUnavailable},
		"an error without category":      {good: 1, err: errors.New("odd"), kind: core.ErrProtocol, text: "without a category"},
		"an entry that cannot be leased": {good: 2, last: contract.Entry{Name: "o", Err: refused}},
		"an entry without a layout":      {good: 2, last: contract.Entry{Name: "bad"}, kind: core.ErrProtocol},
	} {
		p := newOdd(t)
		p.arrays = func(yield func(contract.Entry, error) bool) {
			for i := range c.good {
				if !yield(good(i), nil) {
					return
				}
			}
			if c.last.Name != "" && !yield(c.last, nil) {
				return
			}
			if c.err != nil {
				yield(contract.Entry{}, c.err)
			}
		}
		var names []string
		var failed []error
		for entry, err := range wiretest.Connect(t, p).Arrays(t.Context()) {
			if err != nil {
				failed = append(failed, err)
				continue
			}
			names = append(names, entry.Name)
			if entry.Name == "o" {
				wantRemote(t, name, entry.Err, core.ErrDType, "publish a copy")
			}
		}
		want := c.good
		if c.last.Err != nil {
			want++
		}
		if len(names) != want || !slices.IsSorted(names) {
			t.Errorf("%s: %d entries arrived, want %d", name, len(names), want)
		}
		switch {
		case c.kind == nil && len(failed) > 0, c.kind != nil && len(failed) != 1:
			t.Errorf("%s: errors %v", name, failed)
		case c.kind != nil && !errors.Is(failed[0], c.kind), c.text != "" && !strings.Contains(failed[0].Error(), c.text):
			t.Errorf("%s: the listing ends with %v, want %v with %q", name, failed[0], c.kind, c.text)
		}
	}
}

// TestListingThatIsLeft: a host that has seen enough ends the producer's loop, too.
func TestListingThatIsLeft(t *testing.T) {
	t.Parallel()
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	p := newOdd(t)
	p.arrays = func(yield func(contract.Entry, error) bool) {
		defer close(left)
		for i := 0; ; i++ { // for ever
			if !yield(contract.Entry{Name: fmt.Sprint("a", i), Layout: layout}, nil) {
				return
			}
		}
	}
	for _, err := range wiretest.Connect(t, p).Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	recv(t, left)
}

// TestLeasesThatCannotCross: a lease that no message can hold is the producer's mistake, and does not stay.
func TestLeasesThatCannotCross(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*contract.Lease){
		"route":  func(l *contract.Lease) { l.Route = "by post" },
		"reason": func(l *contract.Lease) { l.Reason = "no such" },
		"fence":  func(l *contract.Lease) { l.Fence = nil },
		"layout": func(l *contract.Lease) { l.Layout = core.Layout{} },
	} {
		p := newOdd(t)
		p.change = change
		client := wiretest.Connect(t, p)
		_, err := client.Lease(t.Context(), "samples", contract.Request{})
		if !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s: Lease = %v; want ErrProtocol", name, err)
		}
		eventually(t, func() error { return leases(t, p, 0) })
	}
}

// TestDescriptorsThatFail: what is wrong with a segment is said, and none arrives.
func TestDescriptorsThatFail(t *testing.T) {
	t.Parallel()
	closed, err := os.CreateTemp(t.TempDir(), "closed")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file *os.File
		err  error
		kind error
		text string
	}{
		"none":    {kind: core.ErrProtocol, text: "no file for segment 9"},
		"closed":  {file: closed, kind: core.ErrUnavailable},
		"refused": {err: &core.Error{Op: "descriptor", Kind: core.ErrReadOnly, Err: errors.New("it is sealed")}, kind: core.ErrReadOnly, text: "sealed"},
	} {
		p := newOdd(t)
		p.descriptor = func() (*os.File, error) { return c.file, c.err }
		file, err := wiretest.Connect(t, p).Descriptor(t.Context(), 9, true)
		if file != nil {
			t.Errorf("%s: a file arrived", name)
		}
		wantRemote(t, name, err, c.kind, c.text)
	}
}

// TestHostileHosts makes calls that no client of ours makes. The answer to each is a violation of the protocol, and the
// session goes on.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	p := newOdd(t)
	link := wiretest.Dial(t, p, wiretest.Options{})
	raw := pb.NewProducerServiceClient(link.Conn)
	ctx := t.Context()
	lease := func(req *pb.LeaseRequest) func() error {
		return func() error { return second(raw.Lease(ctx, req)) }
	}
	open := func(s *pb.Settings) func() error {
		return func() error { return second(raw.Open(ctx, &pb.OpenRequest{Settings: s})) }
	}
	long := strings.Repeat("x", 1<<17)
	if _, err := raw.Lease(ctx, &pb.LeaseRequest{Name: "samples", Token: 7}); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"a policy that is none": lease(&pb.LeaseRequest{Name: "samples", Copy: 99}),
		"a negative policy":     lease(&pb.LeaseRequest{Name: "samples", Copy: -1}),
		"a name without end":    lease(&pb.LeaseRequest{Name: long}),
		"a token twice":         lease(&pb.LeaseRequest{Name: "samples", Token: 7}),
		"a session twice":       open(&pb.Settings{}),
		"settings without end":  open(&pb.Settings{Program: long}),
		"a mailbox of nothing":  open(&pb.Settings{Handoff: &pb.HandoffSettings{}}),
		"too many leases": func() error {
			return second(raw.Release(ctx, &pb.ReleaseRequest{Leases: make([]uint64, 1<<16+1)}))
		},
		"too many tokens": func() error {
			return second(raw.Release(ctx, &pb.ReleaseRequest{Tokens: make([]uint64, 1<<16), Leases: []uint64{1}}))
		},
	} {
		err := call()
		if status.Code(err) != codes.Internal {
			t.Errorf("%s: %v; want a violation of the protocol", name, err)
		}
	}
	if err := leases(t, p, 1); err != nil {
		t.Errorf("of one good call and many bad ones: %v", err)
	}
	if _, err := raw.Release(ctx, &pb.ReleaseRequest{Tokens: []uint64{7, 7, 8}, Leases: []uint64{4711}}); err != nil {
		t.Errorf("what is not held any more can be released: %v", err)
	}
	if err := leases(t, p, 0); err != nil {
		t.Error(err)
	}
	if _, err := link.Client.Info(ctx); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCallsThatNobodyServes: Wait and Refresh of a producer that has neither are unsupported, whatever a host believes.
func TestCallsThatNobodyServes(t *testing.T) {
	t.Parallel()
	raw := pb.NewProducerServiceClient(wiretest.Dial(t, newOdd(t), wiretest.Options{}).Conn)
	_, err := raw.Wait(t.Context(), &pb.WaitRequest{})
	_, refresh := raw.Refresh(t.Context(), &pb.RefreshRequest{Lease: 1})
	if status.Code(err) != codes.Unimplemented || status.Code(refresh) != codes.Unimplemented {
		t.Errorf("Wait = %v, Refresh = %v", err, refresh)
	}
	raw = pb.NewProducerServiceClient(wiretest.Dial(t, newProgram(t), wiretest.Options{Closed: true}).Conn)
	if _, err := raw.Wait(t.Context(), &pb.WaitRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("Wait before Open = %v", err)
	}
}
