package wire

import (
	"fmt"
	"time"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/ring"
)

// maxSpin bounds how long a side may be told to look before it sleeps.
const maxSpin = time.Second

// handoffToProto gives nil for no ring.
func handoffToProto(s handoff.Settings) *pb.HandoffSettings {
	if s.Lanes == 0 {
		return nil
	}
	return &pb.HandoffSettings{Lanes: uint32(s.Lanes), Spin: int64(s.Spin)}
}

func handoffToCore(s *pb.HandoffSettings) (handoff.Settings, error) {
	switch lanes, spin := s.GetLanes(), s.GetSpin(); {
	case s == nil:
		return handoff.Settings{}, nil
	case lanes < 1 || lanes > ring.MaxLanes || spin < 0 || spin > int64(maxSpin):
		return handoff.Settings{}, fmt.Errorf("a ring of %d lanes, with a spin of %d ns", lanes, spin)
	}
	return handoff.Settings{Lanes: int(s.GetLanes()), Spin: time.Duration(s.GetSpin())}, nil
}

func ringToProto(r handoff.Ring) *pb.Handoff {
	out := &pb.Handoff{Segment: uint64(r.Segment), Size: r.Size, Lanes: uint32(r.Lanes)}
	if r.Board != (handoff.Board{}) {
		out.Board = &pb.Board{Segment: uint64(r.Board.Segment), Size: r.Board.Size}
	}
	return out
}

// ringToCore leaves the check to who maps it.
func ringToCore(r *pb.Handoff) handoff.Ring {
	lanes := int(min(r.GetLanes(), ring.MaxLanes+1))
	return handoff.Ring{
		Segment: core.SegmentID(r.GetSegment()), Size: r.GetSize(), Lanes: lanes,
		Board: handoff.Board{Segment: core.SegmentID(r.GetBoard().GetSegment()), Size: r.GetBoard().GetSize()},
	}
}
