package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// renewer is a producer whose leases move as the test says.
type renewer struct {
	*coretest.Producer
	renew func(id contract.LeaseID) (contract.Segment, int, error)
}

func (r renewer) Renew(_ context.Context, id contract.LeaseID) (contract.Segment, int, error) {
	return r.renew(id)
}

// TestRenew: each lease has its own answer, and the file of a segment comes along, unless the host has it.
func TestRenew(t *testing.T) {
	t.Parallel()
	gone := &core.Error{Op: "renew", Object: "weights", Kind: core.ErrPointer, Err: errors.New("it was freed"), Remedy: "look"}
	var s contract.Segment
	client := wiretest.Connect(t, renewer{coretest.NewProducer(t, coretest.Arrays()...), func(id contract.LeaseID) (contract.Segment, int, error) {
		switch id {
		case 1, 2:
			return s, 8 * int(id), nil
		case 3:
			return contract.Segment{}, 0, gone
		default:
			return contract.Segment{ID: 999, Size: 4096, Sealed: true}, 0, nil // of which it has no file
		}
	}})
	l, err := client.Lease(t.Context(), "samples", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ = l.Handle.(contract.Segment)
	leases := []contract.Renewal{{Lease: 1, Has: s.ID}, {Lease: 2, Has: s.ID + 1}, {Lease: 3}, {Lease: 4}}
	client.Renew(t.Context(), leases)
	for i, l := range leases[:2] {
		if l.Err != nil || l.Segment != s || l.Offset != 8*(i+1) || (l.File != nil) != (i == 1) {
			t.Errorf("lease %d: %+v", l.Lease, l)
		}
	}
	if f := leases[1].File; f != nil {
		if info, err := f.Stat(); err != nil || info.Size() < s.Size {
			t.Errorf("the file: %v, %v", info, err)
		}
		f.Close()
	}
	if e, ok := errors.AsType[*core.Error](leases[2].Err); !ok || !errors.Is(e, core.ErrPointer) || !e.Remote || e.Object != "weights" || e.Remedy != "look" ||
		leases[2].Segment.ID != 0 {
		t.Errorf("lease 3: %+v", leases[2])
	}
	if l := leases[3]; !errors.Is(l.Err, core.ErrNotFound) || l.Segment.ID != 999 || l.File != nil {
		t.Errorf("a lease on a segment without a file: %+v", l)
	}
}

// TestRenewFails: what concerns the call is the error of all its leases.
func TestRenewFails(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	moved := func(contract.LeaseID) (contract.Segment, int, error) {
		cancel()
		return contract.Segment{ID: 1, Size: 4096}, 0, nil
	}
	able := wiretest.Connect(t, renewer{coretest.NewProducer(t), moved})
	for name, test := range map[string]struct {
		client *wire.Client
		leases int
		kind   error
	}{
		"a producer that cannot": {wiretest.Connect(t, coretest.NewProducer(t)), 2, core.ErrUnsupported},
		"too many":               {able, 257, core.ErrProtocol},
		"given up":               {able, 2, context.Canceled},
	} {
		leases := make([]contract.Renewal, test.leases)
		ctx := t.Context()
		if errors.Is(test.kind, context.Canceled) {
			ctx = ended
		}
		test.client.Renew(ctx, leases)
		for _, l := range leases {
			if !errors.Is(l.Err, test.kind) || l.File != nil || l.Segment.ID != 0 {
				t.Errorf("%s: %+v, want %v", name, l, test.kind)
			}
		}
	}
	link := wiretest.Dial(t, coretest.NewProducer(t), wiretest.Options{})
	if _, err := pb.NewProducerServiceClient(link.Conn).Renew(t.Context(), &pb.RenewRequest{}); err == nil {
		t.Error("a producer that cannot was asked")
	}
	link = wiretest.Dial(t, renewer{coretest.NewProducer(t), moved}, wiretest.Options{Closed: true})
	if _, err := pb.NewProducerServiceClient(link.Conn).Renew(t.Context(), &pb.RenewRequest{}); err == nil {
		t.Error("a producer was asked before its session was open")
	}
}

// TestRenewHostile: an answer that breaks the rules is the error of the leases that it concerns.
func TestRenewHostile(t *testing.T) {
	t.Parallel()
	segment := &pb.Segment{Id: 7, Size: 4096}
	for name, answer := range map[string][]*pb.Renewed{
		"too few":            {{Segment: segment}},
		"too many":           {{Segment: segment}, {Segment: segment}, {Segment: segment}},
		"an offset":          {{Segment: segment, Offset: -1}, {Segment: segment, Offset: 4097}},
		"no segment":         {{}, {Segment: &pb.Segment{Id: 7}}},
		"two files for one":  {{Segment: segment}, {Segment: segment}},
		"a segment at least": {{Segment: &pb.Segment{Id: 7, Size: -1}, Error: &pb.ErrorInfo{}}, {Error: &pb.ErrorInfo{}}},
	} {
		s := &scripted{renew: func(side *fdpass.Conn, req *pb.RenewRequest) *pb.RenewResponse {
			for range 2 {
				if err := side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, req.GetLeases()[1].GetToken()), os.Stdin, os.Stdin); err != nil {
					t.Error(err)
				}
			}
			return &pb.RenewResponse{Leases: answer}
		}}
		link := s.dial(t, wire.ClientOptions{})
		leases := []contract.Renewal{{Lease: 1, Has: 7}, {Lease: 2}}
		link.Client.Renew(t.Context(), leases)
		for i, l := range leases {
			if name == "two files for one" && i == 0 {
				if l.Err != nil {
					t.Errorf("%s: %v", name, l.Err)
				}
				continue
			}
			if !errors.Is(l.Err, core.ErrProtocol) || l.File != nil {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
}
