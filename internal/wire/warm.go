package wire

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Warm has protobuf make what it makes of a message when a process first uses it, for the messages of which a session's beginning and its
// first view consist. That takes a millisecond, which whoever attaches or is attached to has time for beside other things. It is safe for
// concurrent use.
func Warm() {
	lease := &pb.Lease{
		Layout: &pb.Layout{Dtype: &pb.DType{}, Device: &pb.Device{}},
		Handle: &pb.Handle{Kind: &pb.Handle_Segment{Segment: &pb.Segment{}}},
		Fence:  &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}},
	}
	for _, m := range []proto.Message{
		&pb.OpenRequest{Settings: &pb.Settings{Handoff: &pb.HandoffSettings{}, Calls: &pb.CallSettings{}}},
		&pb.OpenResponse{
			Info:         &pb.Info{Frameworks: []*pb.Framework{{Quirks: []*pb.Quirk{{}}}}},
			Capabilities: &pb.Capabilities{Handoff: &pb.Handoff{}, Calls: &pb.Calls{}},
		},
		&pb.DescriptorRequest{}, &pb.DescriptorResponse{}, &pb.WaitRequest{}, lease,
	} {
		if b, err := proto.Marshal(m); err == nil {
			_ = proto.Unmarshal(b, m) // it can: these are messages
		}
	}
}
