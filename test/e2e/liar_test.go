package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/wire"
)

const (
	lieEnv      = "HOSTILE_LIE" // makes the test binary a plugin that tells this lie
	segmentSize = 1 << 16
)

// lie is one way to break the protocol. What is nil is done honestly.
type lie struct {
	info       func(*pb.Info)
	lease      func(*pb.Lease)
	answer     func(context.Context) error // in place of the answer to Lease
	arrays     func(grpc.ServerStreamingServer[pb.ArraysResponse]) error
	descriptor func(l *liar, req *pb.DescriptorRequest) error // in place of sending one
	before     func(side *fdpass.Conn)                        // before anything else
	deaf       bool                                           // does not end when told to
}

// liar serves the protocol without any of ndbridge's own checks.
type liar struct {
	pb.UnimplementedProducerServiceServer

	lie    lie
	side   *fdpass.Conn
	memory *os.File
}

// serveLie is the main function of a hostile plugin.
func serveLie(name string) int {
	l := lies()[name]
	side, err := fdpass.FromFD(3)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if l.before != nil {
		l.before(side)
	}
	server := &liar{lie: l, side: side, memory: memfd(segmentSize, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)}
	if err := wire.Serve(context.Background(), side, os.Stdout, func(r grpc.ServiceRegistrar) { pb.RegisterProducerServiceServer(r, server) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for l.deaf {
		time.Sleep(time.Hour)
	}
	return 0
}

func (l *liar) info() *pb.Info {
	info := &pb.Info{Program: "liar", Plugin: "liar 0", Pid: int64(os.Getpid()), SharedHeap: "off"}
	if l.lie.info != nil {
		l.lie.info(info)
	}
	return info
}

func (l *liar) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	return &pb.OpenResponse{Info: l.info(), Capabilities: &pb.Capabilities{}}, nil
}

func (l *liar) Info(context.Context, *pb.InfoRequest) (*pb.InfoResponse, error) {
	return &pb.InfoResponse{Info: l.info()}, nil
}

func (l *liar) Arrays(_ *pb.ArraysRequest, stream grpc.ServerStreamingServer[pb.ArraysResponse]) error {
	if l.lie.arrays != nil {
		return l.lie.arrays(stream)
	}
	return stream.Send(&pb.ArraysResponse{Entries: []*pb.Entry{{Name: "a", Layout: honestLayout()}}})
}

func (l *liar) Lease(ctx context.Context, req *pb.LeaseRequest) (*pb.LeaseResponse, error) {
	if l.lie.answer != nil {
		if err := l.lie.answer(ctx); err != nil {
			return nil, err
		}
	}
	lease := &pb.Lease{
		Id: req.GetToken()>>1 | 1, Layout: honestLayout(), Framework: "liar", Route: pb.Route_ROUTE_SHARED_HEAP,
		Handle:   &pb.Handle{Kind: &pb.Handle_Segment{Segment: &pb.Segment{Id: 1, Size: segmentSize, Sealed: true}}},
		Fence:    &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}},
		Writable: req.GetWritable(),
	}
	if l.lie.lease != nil {
		l.lie.lease(lease)
	}
	return &pb.LeaseResponse{Lease: lease}, nil
}

func (l *liar) Descriptor(_ context.Context, req *pb.DescriptorRequest) (*pb.DescriptorResponse, error) {
	send := sendOne
	if l.lie.descriptor != nil {
		send = l.lie.descriptor
	}
	return &pb.DescriptorResponse{}, send(l, req)
}

func (l *liar) Release(context.Context, *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	return &pb.ReleaseResponse{}, nil
}

func honestLayout() *pb.Layout {
	return &pb.Layout{
		Dtype:  &pb.DType{Code: 2, Bits: 64, Lanes: 1},
		Device: &pb.Device{Kind: pb.DeviceKind_DEVICE_KIND_CPU},
		Shape:  []int64{64, 128},
	}
}

// sendOne is the honest way.
func sendOne(l *liar, req *pb.DescriptorRequest) error {
	return l.send(req.GetToken(), l.memory)
}

func (l *liar) send(token uint64, files ...*os.File) error {
	return l.side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, token), files...)
}

// memfd makes a file in memory with exactly those seals.
func memfd(size int64, seals int) *os.File {
	fd, err := unix.MemfdCreate("hostile", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		panic(err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		panic(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		panic(err)
	}
	return os.NewFile(uintptr(fd), "hostile")
}
