package e2e

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// lies names each lie. The tests say what the host must make of it.
func lies() map[string]lie {
	all := map[string]lie{"honest": {}}
	for name, layout := range layoutLies() {
		all["layout: "+name] = lie{lease: func(l *pb.Lease) { layout(l.GetLayout()) }}
	}
	for name, lease := range leaseLies() {
		all["lease: "+name] = lie{lease: lease}
	}
	for name, descriptor := range descriptorLies() {
		all["descriptor: "+name] = lie{descriptor: descriptor}
	}
	maps.Copy(all, otherLies())
	return all
}

func layoutLies() map[string]func(*pb.Layout) {
	return map[string]func(*pb.Layout){
		"rank of a million":        func(l *pb.Layout) { l.Shape = make([]int64, 1<<20) },
		"rank 65":                  func(l *pb.Layout) { l.Shape = ones(65) },
		"2^31 elements each way":   func(l *pb.Layout) { l.Shape = []int64{1 << 31, 1 << 31, 1 << 31} },
		"largest extent":           func(l *pb.Layout) { l.Shape = []int64{math.MaxInt64} },
		"negative extent":          func(l *pb.Layout) { l.Shape = []int64{-1, 128} },
		"too many elements":        func(l *pb.Layout) { l.Shape = []int64{65, 128} },
		"more strides than axes":   func(l *pb.Layout) { l.Strides = []int64{8, 8, 8} },
		"fewer strides than axes":  func(l *pb.Layout) { l.Strides = []int64{8} },
		"stride past the end":      func(l *pb.Layout) { l.Strides = []int64{1 << 40, 8} },
		"largest stride":           func(l *pb.Layout) { l.Strides = []int64{math.MaxInt64, math.MaxInt64} },
		"smallest stride":          func(l *pb.Layout) { l.Strides = []int64{math.MinInt64, 8} },
		"stride before the start":  func(l *pb.Layout) { l.Strides = []int64{-1024, 8} },
		"offset past the end":      func(l *pb.Layout) { l.Offset = segmentSize },
		"offset one too far":       func(l *pb.Layout) { l.Offset = 1 },
		"largest offset":           func(l *pb.Layout) { l.Offset = math.MaxInt64 },
		"negative offset":          func(l *pb.Layout) { l.Offset = -8 },
		"no dtype":                 func(l *pb.Layout) { l.Dtype = nil },
		"unknown dtype":            func(l *pb.Layout) { l.Dtype.Code = 200 },
		"dtype beyond all fields":  func(l *pb.Layout) { l.Dtype.Code = math.MaxUint32 },
		"float of 7 bits":          func(l *pb.Layout) { l.Dtype.Bits = 7 },
		"no bits":                  func(l *pb.Layout) { l.Dtype.Bits = 0 },
		"no lanes":                 func(l *pb.Layout) { l.Dtype.Lanes = 0 },
		"lanes past the end":       func(l *pb.Layout) { l.Dtype.Lanes = 65535 },
		"no device":                func(l *pb.Layout) { l.Device = nil },
		"unknown device":           func(l *pb.Layout) { l.Device.Kind = 77 },
		"memory of a GPU":          func(l *pb.Layout) { l.Device.Kind = pb.DeviceKind_DEVICE_KIND_CUDA },
		"negative device":          func(l *pb.Layout) { l.Device.Index = -1 },
		"endless tag":              func(l *pb.Layout) { l.Tag = strings.Repeat("x", 1<<20) },
		"elements in no memory":    func(l *pb.Layout) { l.Shape = []int64{0} },
		"sub-byte dtype, strided":  func(l *pb.Layout) { l.Dtype.Bits, l.Strides = 4, []int64{1024, 8} },
		"opaque handle of 64 bits": func(l *pb.Layout) { l.Dtype.Code = 3 },
	}
}

func leaseLies() map[string]func(*pb.Lease) {
	segment := func(l *pb.Lease) *pb.Segment { return l.GetHandle().GetSegment() }
	return map[string]func(*pb.Lease){
		"no layout":              func(l *pb.Lease) { l.Layout = nil },
		"no handle":              func(l *pb.Lease) { l.Handle = nil },
		"unknown handle":         func(l *pb.Lease) { l.Handle = &pb.Handle{} },
		"no memory":              func(l *pb.Lease) { l.Handle.Kind = &pb.Handle_Empty{Empty: &pb.NoMemory{}} },
		"no fence":               func(l *pb.Lease) { l.Fence = nil },
		"unknown fence":          func(l *pb.Lease) { l.Fence = &pb.Fence{} },
		"no route":               func(l *pb.Lease) { l.Route = pb.Route_ROUTE_UNSPECIFIED },
		"unknown route":          func(l *pb.Lease) { l.Route = 99 },
		"empty route":            func(l *pb.Lease) { l.Route = pb.Route_ROUTE_EMPTY },
		"unknown reason":         func(l *pb.Lease) { l.Reason = 99 },
		"reason without a copy":  func(l *pb.Lease) { l.Reason = pb.Reason_REASON_FROZEN },
		"copy without a reason":  func(l *pb.Lease) { l.Route = pb.Route_ROUTE_STAGED },
		"writable unasked":       func(l *pb.Lease) { l.Writable = true },
		"no size":                func(l *pb.Lease) { segment(l).Size = 0 },
		"negative size":          func(l *pb.Lease) { segment(l).Size = -1 },
		"larger than its file":   func(l *pb.Lease) { segment(l).Size = 1 << 30; l.Layout.Offset = 1 << 29 },
		"larger than any memory": func(l *pb.Lease) { segment(l).Size = math.MaxInt64; l.Layout.Offset = 1 << 62 },
		"endless quirk":          func(l *pb.Lease) { l.Quirks = []string{strings.Repeat("x", 1<<20)} },
		"endless quirks":         func(l *pb.Lease) { l.Quirks = make([]string, 1<<20) },
	}
}

func descriptorLies() map[string]func(*liar, *pb.DescriptorRequest) error {
	instead := func(open func() (*os.File, error)) func(*liar, *pb.DescriptorRequest) error {
		return func(l *liar, req *pb.DescriptorRequest) error {
			file, err := open()
			if err != nil {
				panic(err)
			}
			defer file.Close()
			return l.send(req.GetToken(), file)
		}
	}
	memory := func(size int64, seals int) func() (*os.File, error) {
		return func() (*os.File, error) { return memfd(size, seals), nil }
	}
	return map[string]func(*liar, *pb.DescriptorRequest) error{
		"never comes":  func(*liar, *pb.DescriptorRequest) error { return nil },
		"wrong token":  func(l *liar, req *pb.DescriptorRequest) error { return l.send(req.GetToken()+1, l.memory) },
		"none in it":   func(l *liar, req *pb.DescriptorRequest) error { return l.send(req.GetToken()) },
		"two in it":    func(l *liar, req *pb.DescriptorRequest) error { return l.send(req.GetToken(), l.memory, l.memory) },
		"short":        func(l *liar, _ *pb.DescriptorRequest) error { return l.side.Send([]byte{'D', 1}, l.memory) },
		"other kind":   func(l *liar, _ *pb.DescriptorRequest) error { return l.side.Send([]byte{'E'}, l.memory) },
		"not sealed":   instead(memory(segmentSize, 0)),
		"half sealed":  instead(memory(segmentSize, unix.F_SEAL_GROW)),
		"too small":    instead(memory(4096, sealed)),
		"empty":        instead(memory(0, sealed)),
		"regular file": instead(func() (*os.File, error) { return os.Open("/proc/self/exe") }),
		"directory":    instead(func() (*os.File, error) { return os.Open("/") }),
		"device":       instead(func() (*os.File, error) { return os.Open("/dev/zero") }),
		"null":         instead(func() (*os.File, error) { return os.OpenFile("/dev/null", os.O_RDWR, 0) }),
		"pipe":         instead(func() (*os.File, error) { r, _, err := os.Pipe(); return r, err }),
		"socket": instead(func() (*os.File, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return os.NewFile(uintptr(fd), "socket"), err
		}),
		"epoll": instead(func() (*os.File, error) {
			fd, err := unix.EpollCreate1(0)
			return os.NewFile(uintptr(fd), "epoll"), err
		}),
		"path only": instead(func() (*os.File, error) { return os.OpenFile("/proc/self/exe", unix.O_PATH, 0) }),
		"flood": func(l *liar, req *pb.DescriptorRequest) error {
			for i := range uint64(5000) { // more than a process may have open
				if err := l.send(req.GetToken()+1+i, l.memory, l.memory, l.memory, l.memory); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func otherLies() map[string]lie {
	return map[string]lie{
		"lease: never answered": {answer: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"lease: bare status":    {answer: func(context.Context) error { return status.Error(codes.DataLoss, "who knows") }},
		"lease: endless error":  {answer: func(context.Context) error { return status.Error(codes.Internal, strings.Repeat("x", 1<<20)) }},
		"lease: exits":          {answer: func(context.Context) error { os.Exit(0); return nil }},
		"lease: crashes":        {answer: func(context.Context) error { return die(unix.SIGSEGV) }},
		"descriptor: crashes": {descriptor: func(*liar, *pb.DescriptorRequest) error {
			return die(unix.SIGKILL)
		}},
		"arrays: endless": {arrays: func(s grpc.ServerStreamingServer[pb.ArraysResponse]) error {
			entries := make([]*pb.Entry, 1000)
			for i := range entries {
				entries[i] = &pb.Entry{Name: "a", Layout: honestLayout()}
			}
			for {
				if err := s.Send(&pb.ArraysResponse{Entries: entries}); err != nil {
					return err
				}
			}
		}},
		"arrays: no layout": {arrays: func(s grpc.ServerStreamingServer[pb.ArraysResponse]) error {
			return s.Send(&pb.ArraysResponse{Entries: []*pb.Entry{{Name: "a"}}})
		}},
		"arrays: nil entry": {arrays: func(s grpc.ServerStreamingServer[pb.ArraysResponse]) error {
			return s.Send(&pb.ArraysResponse{Entries: []*pb.Entry{{}}})
		}},
		"info: negative process": {info: func(i *pb.Info) { i.Pid = -1 }},
		"info: endless text":     {info: func(i *pb.Info) { i.Plugin = strings.Repeat("x", 1<<20) }},
		"info: endless adapters": {info: func(i *pb.Info) { i.Adapters = make([]string, 1<<20) }},
		"side: garbage": {before: func(side *fdpass.Conn) {
			for range 1000 {
				_ = side.Send([]byte{0xff, 0, 1, 2})
				_ = side.Send([]byte(`{"stage":`))
				_ = side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, 1))
			}
		}},
		"side: an error that is none": {before: func(side *fdpass.Conn) {
			_ = side.Send([]byte(`{"stage":"error","kind":"\u0000"}`))
		}},
		"deaf": {deaf: true},
	}
}

func ones(n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// die ends this process by a signal. It does not return meanwhile, so that nothing is answered.
func die(signal unix.Signal) error {
	if err := unix.Kill(os.Getpid(), signal); err != nil {
		return err
	}
	select {}
}
