package wire_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// scripted is a server that answers what a test wants: one that breaks the rules.
type scripted struct {
	pb.UnimplementedProducerServiceServer

	side       *fdpass.Conn
	handoff    *pb.Handoff // announced with the answer to Open
	calls      *pb.Calls   // likewise
	infoError  error
	info       *pb.Info
	lease      func(ctx context.Context, req *pb.LeaseRequest) (*pb.Lease, error)
	refresh    func(req *pb.RefreshRequest) *pb.RefreshResponse
	renew      func(side *fdpass.Conn, req *pb.RenewRequest) *pb.RenewResponse
	descriptor func(side *fdpass.Conn, req *pb.DescriptorRequest) error
	entries    func(send func(*pb.ArraysResponse) error) error
	released   chan *pb.ReleaseRequest
}

func (s *scripted) dial(t *testing.T, opts wire.ClientOptions) *wiretest.Link {
	t.Helper()
	s.released = make(chan *pb.ReleaseRequest, 16)
	return wiretest.Serve(t, func(side *fdpass.Conn, r grpc.ServiceRegistrar) {
		s.side = side
		pb.RegisterProducerServiceServer(r, s)
	}, wiretest.Options{Client: opts})
}

func (s *scripted) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	return &pb.OpenResponse{Info: &pb.Info{}, Capabilities: &pb.Capabilities{
		Wait: true, Refresh: s.refresh != nil, Renew: s.renew != nil, Handoff: s.handoff, Calls: s.calls,
	}}, nil
}

func (s *scripted) Info(context.Context, *pb.InfoRequest) (*pb.InfoResponse, error) {
	return &pb.InfoResponse{Info: s.info}, s.infoError
}

func (s *scripted) Lease(ctx context.Context, req *pb.LeaseRequest) (*pb.LeaseResponse, error) {
	lease, err := s.lease(ctx, req)
	if err != nil {
		return nil, err
	}
	return &pb.LeaseResponse{Lease: lease}, nil
}

func (s *scripted) Refresh(_ context.Context, req *pb.RefreshRequest) (*pb.RefreshResponse, error) {
	return s.refresh(req), nil
}

func (s *scripted) Renew(_ context.Context, req *pb.RenewRequest) (*pb.RenewResponse, error) {
	return s.renew(s.side, req), nil
}

func (s *scripted) Descriptor(_ context.Context, req *pb.DescriptorRequest) (*pb.DescriptorResponse, error) {
	if err := s.descriptor(s.side, req); err != nil {
		return nil, err
	}
	return &pb.DescriptorResponse{}, nil
}

func (s *scripted) Arrays(_ *pb.ArraysRequest, stream grpc.ServerStreamingServer[pb.ArraysResponse]) error {
	return s.entries(stream.Send)
}

func (s *scripted) Release(_ context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	s.released <- req
	return &pb.ReleaseResponse{}, nil
}

func (s *scripted) Wait(ctx context.Context, _ *pb.WaitRequest) (*pb.WaitResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
