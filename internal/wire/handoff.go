package wire

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// maxSpin bounds how long a side may be told to look before it sleeps.
const maxSpin = time.Second

// handoffToProto gives nil for no mailbox.
func handoffToProto(s handoff.Settings) *pb.HandoffSettings {
	if s.Slots == 0 {
		return nil
	}
	return &pb.HandoffSettings{Slots: uint32(s.Slots), Spin: int64(s.Spin)}
}

func handoffToCore(s *pb.HandoffSettings) (handoff.Settings, error) {
	switch slots, spin := s.GetSlots(), s.GetSpin(); {
	case s == nil:
		return handoff.Settings{}, nil
	case slots < 1 || slots > handoff.MaxSlots || spin < 0 || spin > int64(maxSpin):
		return handoff.Settings{}, fmt.Errorf("a mailbox of %d slots, with a spin of %d ns", slots, spin)
	}
	return handoff.Settings{Slots: int(s.GetSlots()), Spin: time.Duration(s.GetSpin())}, nil
}

func memoryToProto(m handoff.Memory) *pb.Handoff {
	return &pb.Handoff{Segment: uint64(m.Segment), Size: m.Size, Slots: uint32(m.Slots), Offers: m.Offers}
}

// memoryToCore leaves the check to who maps it.
func memoryToCore(m *pb.Handoff) handoff.Memory {
	return handoff.Memory{
		Segment: contract.SegmentID(m.GetSegment()), Size: m.GetSize(),
		Slots: int(min(m.GetSlots(), handoff.MaxSlots+1)), Offers: m.GetOffers(),
	}
}

// codec implements handoff.Codec.
type codec struct{}

func (codec) Append(b []byte, l *contract.Lease) ([]byte, error) {
	message, err := leaseToProto(*l)
	if err != nil {
		return b, err
	}
	return proto.MarshalOptions{}.MarshalAppend(b, message)
}

func (codec) Lease(b []byte, req contract.Request) (contract.Lease, error) {
	message := new(pb.Lease)
	if err := proto.Unmarshal(b, message); err != nil {
		return contract.Lease{}, err
	}
	return leaseToCore(message, req)
}

func (codec) ID(b []byte) contract.LeaseID {
	message := new(pb.Lease)
	if proto.Unmarshal(b, message) != nil {
		return 0
	}
	return contract.LeaseID(message.GetId())
}

// OpenHandoff maps the memory that the other side has announced when the session was opened. Callers look
// for an answer for as long as spin before they sleep. stray is called with leases that nobody waited for
// any more. The client is nil if the other side announced nothing; an error that wraps core.ErrProtocol says
// that it lied.
func (c *Client) OpenHandoff(ctx context.Context, spin time.Duration, stray func(contract.LeaseID)) (*handoff.Client, error) {
	c.mu.Lock()
	memory := c.handoff
	c.mu.Unlock()
	if memory == (handoff.Memory{}) {
		return nil, nil //nolint:nilnil // see above
	}
	file, err := c.Descriptor(ctx, memory.Segment, true)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it
	client, err := handoff.NewClient(file, memory, codec{}, spin, stray)
	if err != nil {
		return nil, c.violated("open", "", fmt.Errorf("hand-off: %w; a plugin of another release may mean another layout", err))
	}
	return client, nil
}

// handedOff is a producer that has no answers of its own for a mailbox.
type handedOff struct{ contract.Producer }

// Leases implements handoff.Producer.
func (h handedOff) Leases(ctx context.Context, names []string, req contract.Request, results []handoff.Look) []handoff.Look {
	req.NoWait = true
	for _, name := range names {
		l, err := h.Lease(ctx, name, req)
		if err != nil {
			results = append(results, handoff.Look{})
			continue
		}
		results = append(results, handoff.Look{Status: handoff.Changed, Lease: &l})
	}
	return results
}

// Refreshes implements handoff.Producer: gRPC does it.
func (handedOff) Refreshes(_ context.Context, ids []contract.LeaseID, _ bool, results []handoff.Look) []handoff.Look {
	return append(results, make([]handoff.Look, len(ids))...)
}

// handOff makes the mailbox that the host wishes.
func (s *service) handOff(settings handoff.Settings) (*handoff.Server, error) {
	var p handoff.Producer = handedOff{s.producer}
	if prompt, ok := s.producer.(handoff.Prompt); ok {
		p = prompt.Mailbox()
	}
	return handoff.NewServer(p, s.release, codec{}, settings)
}

// file opens the producer's segment of that ID, or the memory of the mailbox or of calls.
func (s *service) file(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	if h := s.handoff.Load(); h != nil {
		if f, err := h.Open(id); f != nil || err != nil {
			return f, err
		}
	}
	if c := s.calls.Load(); c != nil {
		if f, err := c.Open(id); f != nil || err != nil {
			return f, err
		}
	}
	return s.producer.Descriptor(ctx, id, writable)
}
