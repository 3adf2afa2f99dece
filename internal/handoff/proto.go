package handoff

import (
	"fmt"
	"time"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/ring"
)

// maxSpin bounds how long a side may be told to look before it sleeps.
const maxSpin = time.Second

// ToProto makes the message of the settings: nil for no ring.
func (s Settings) ToProto() *pb.HandoffSettings {
	if s.Lanes == 0 {
		return nil
	}
	return &pb.HandoffSettings{Lanes: uint32(s.Lanes), Spin: int64(s.Spin)}
}

// SettingsToCore reads a message from a side that is not trusted.
func SettingsToCore(s *pb.HandoffSettings) (Settings, error) {
	if s == nil {
		return Settings{}, nil
	}
	if s.GetLanes() < 1 || s.GetLanes() > ring.MaxLanes || s.GetSpin() < 0 || s.GetSpin() > int64(maxSpin) {
		return Settings{}, fmt.Errorf("a ring of %d lanes, with a spin of %d ns", s.GetLanes(), s.GetSpin())
	}
	return Settings{Lanes: int(s.GetLanes()), Spin: time.Duration(s.GetSpin())}, nil
}

// ToProto makes the message of an announcement.
func (r Ring) ToProto() *pb.Handoff {
	return &pb.Handoff{Segment: uint64(r.Segment), Size: r.Size, Lanes: uint32(r.Lanes)}
}

// RingToCore reads a message from a side that is not trusted. [NewClient] checks it.
func RingToCore(r *pb.Handoff) Ring {
	return Ring{
		Segment: core.SegmentID(r.GetSegment()), Size: r.GetSize(), Lanes: int(min(r.GetLanes(), ring.MaxLanes+1)),
	}
}
