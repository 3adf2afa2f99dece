package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Server serves a contract.Producer to one host. It serves Wait too if the producer is a contract.Waiter,
// and hands it the settings if it is a [Configurer].
type Server struct{ service *service }

// NewServer makes a server for p, which sends descriptors over side; side stays the caller's. When
// the session opens, the producer is configured and then asked for its Info; an error of either is
// the answer to the host.
func NewServer(p contract.Producer, side *fdpass.Conn) *Server {
	return &Server{&service{producer: p, side: side}}
}

// Admit has the server send from side the files that package shm has opened apart. It is called before the session is open.
func (s *Server) Admit() (err error) {
	s.service.apart, err = shm.Admit(s.service.side.Descriptor())
	return err
}

// Close ends what the server does beside the calls. It is called when no call is served any more.
func (s *Server) Close() error {
	var errs []error
	if c := s.service.calls.Swap(nil); c != nil {
		errs = append(errs, c.Close())
	}
	if h := s.service.handoff.Swap(nil); h != nil {
		errs = append(errs, h.Close())
	}
	s.service.files.close()
	if s.service.apart != nil {
		errs = append(errs, s.service.apart.Close())
	}
	return errors.Join(errs...)
}

// Register makes r serve the calls.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	pb.RegisterProducerServiceServer(r, s.service)
}

// service has the methods that gRPC calls. All that it returns as an error is made by toStatus.
type service struct {
	pb.UnimplementedProducerServiceServer

	producer contract.Producer
	side     *fdpass.Conn
	apart    *shm.Admitted // side where shm opens files; nil: that is side, too

	opening atomic.Bool
	open    atomic.Bool
	grants  grantTable
	handoff atomic.Pointer[handoff.Server] // nil: none was asked for
	calls   atomic.Pointer[calls.Server]   // likewise
	files   arrivals
}

func (s *service) Open(ctx context.Context, req *pb.OpenRequest) (*pb.OpenResponse, error) {
	settings, err := settingsToCore(req.GetSettings())
	wish, wrong := handoffToCore(req.GetSettings().GetHandoff())
	wishCalls, alsoWrong := callsToCore(req.GetSettings().GetCalls())
	if err := errors.Join(err, wrong, alsoWrong); err != nil {
		return nil, violation("open", err)
	}
	if s.opening.Swap(true) {
		return nil, violation("open", errors.New("the session is open already"))
	}
	if c, ok := s.producer.(contract.Configurer); ok {
		if err := c.Configure(settings); err != nil {
			return nil, toStatus(err)
		}
	}
	info, err := s.info(ctx) // before the script runs: afterwards it might have to wait
	if err != nil {
		return nil, err
	}
	able := &pb.Capabilities{}
	_, able.Wait = s.producer.(contract.Waiter)
	_, able.Refresh = s.producer.(contract.Refresher)
	_, able.Renew = s.producer.(contract.Renewer)
	_, able.Search = s.producer.(contract.Searcher)
	if wish.Slots > 0 {
		h, err := s.handOff(wish)
		if err != nil {
			return nil, toStatus(&core.Error{Op: "open", Kind: core.ErrUnavailable, Err: err})
		}
		s.handoff.Store(h)
		able.Handoff = memoryToProto(h.Memory())
	}
	switch c, err := s.callable(wishCalls); {
	case err != nil:
		return nil, toStatus(&core.Error{Op: "open", Kind: core.ErrUnavailable, Err: err})
	case c != nil:
		s.calls.Store(c)
		able.Calls = callMemoryToProto(c.Memory())
	}
	s.open.Store(true)
	return &pb.OpenResponse{Info: info, Capabilities: able}, nil
}

// ready refuses calls before Open.
func (s *service) ready(op string) error {
	if !s.open.Load() {
		return violation(op, errors.New("the session is not open"))
	}
	return nil
}

func (s *service) Info(ctx context.Context, _ *pb.InfoRequest) (*pb.InfoResponse, error) {
	if err := s.ready("info"); err != nil {
		return nil, err
	}
	info, err := s.info(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.InfoResponse{Info: info}, nil
}

func (s *service) info(ctx context.Context) (*pb.Info, error) {
	info, err := s.producer.Info(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	message, err := infoToProto(info)
	if err != nil {
		return nil, violation("info", err)
	}
	return message, nil
}

func (s *service) Arrays(_ *pb.ArraysRequest, stream grpc.ServerStreamingServer[pb.ArraysResponse]) error {
	if err := s.ready("list"); err != nil {
		return err
	}
	batch := &pb.ArraysResponse{}
	send := func() error { // an error says that the host is gone, or does not want more
		if len(batch.GetEntries()) == 0 {
			return nil
		}
		full := batch
		batch = &pb.ArraysResponse{}
		return stream.Send(full)
	}
	for entry, err := range s.producer.Arrays(stream.Context()) {
		if err != nil {
			return cmp.Or(send(), toStatus(err)) // what came before the error is the host's
		}
		message, err := entryToProto(entry)
		if err != nil {
			return cmp.Or(send(), violation("list", fmt.Errorf("entry %q: %w", entry.Name, err)))
		}
		batch.Entries = append(batch.Entries, message)
		if len(batch.GetEntries()) == entryBatch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

func (s *service) Lease(ctx context.Context, req *pb.LeaseRequest) (*pb.LeaseResponse, error) {
	if err := s.ready("lease"); err != nil {
		return nil, err
	}
	r, err := requestToCore(req)
	if err != nil {
		return nil, violation("lease", err)
	}
	lease, err := s.producer.Lease(ctx, req.GetName(), r)
	if err != nil {
		return nil, toStatus(err)
	}
	message, err := s.granted(ctx, req.GetToken(), lease)
	return &pb.LeaseResponse{Lease: message}, err
}

// granted makes a message of a lease that the call with that token has granted, or gives the lease back.
func (s *service) granted(ctx context.Context, token uint64, lease contract.Lease) (*pb.Lease, error) {
	message, err := s.grant(ctx, token, lease)
	if err != nil {
		s.grants.Remove(lease.ID)
		return nil, toStatus(errors.Join(err, s.producer.Release(context.WithoutCancel(ctx), lease.ID)))
	}
	return message, nil
}

// grant makes the message of a lease; if it fails, the lease must be released.
func (s *service) grant(ctx context.Context, token uint64, lease contract.Lease) (*pb.Lease, error) {
	message, err := leaseToProto(lease)
	if err == nil && !s.grants.Add(token, lease.ID) {
		err = errors.New("the call's token is taken")
	}
	if err != nil {
		return nil, &core.Error{Op: "lease", Kind: core.ErrProtocol, Err: err}
	}
	// The host may have given the call up before the token was known here; later it uses the token.
	return message, ctx.Err()
}

func (s *service) Refresh(ctx context.Context, req *pb.RefreshRequest) (*pb.RefreshResponse, error) {
	const op = "refresh"
	if err := s.ready(op); err != nil {
		return nil, err
	}
	r, ok := s.producer.(contract.Refresher)
	if !ok {
		return nil, toStatus(&core.Error{Op: op, Kind: core.ErrUnsupported})
	}
	lease, changed, err := r.Refresh(ctx, contract.LeaseID(req.GetLease()))
	if err != nil {
		return nil, toStatus(err)
	}
	if changed {
		resp, err := s.granted(ctx, req.GetToken(), lease)
		return &pb.RefreshResponse{Lease: resp}, err
	}
	fence, err := fenceToProto(lease.Fence)
	if err != nil {
		return nil, violation(op, err)
	}
	return &pb.RefreshResponse{Fence: fence}, nil
}

func (s *service) Descriptor(ctx context.Context, req *pb.DescriptorRequest) (*pb.DescriptorResponse, error) {
	if err := s.ready(opDescriptor); err != nil {
		return nil, err
	}
	loans := []loan{{segment: contract.SegmentID(req.GetSegment()), writable: req.GetWritable(), token: req.GetToken()}}
	if s.lend(ctx, loans); loans[0].err != nil {
		return nil, toStatus(loans[0].err)
	}
	return &pb.DescriptorResponse{}, nil
}

const opDescriptor = "descriptor"

// loan is the file behind a segment, which the host gets for a request with that token.
type loan struct {
	segment  contract.SegmentID
	writable bool
	token    uint64
	file     *os.File
	err      error
}

// lend sends files to the host, and sets what went wrong. All are opened, and then sent, in one go: to wake the thread that does so, and to be
// woken, takes longer than that.
func (s *service) lend(ctx context.Context, loans []loan) {
	var opening sync.WaitGroup
	for i := range loans {
		l := &loans[i]
		opening.Go(func() {
			if l.file, l.err = s.file(ctx, l.segment, l.writable); l.err == nil && l.file == nil {
				l.err = &core.Error{Op: opDescriptor, Kind: core.ErrProtocol, Err: fmt.Errorf("the producer has no file for segment %d", l.segment)}
			}
		})
	}
	opening.Wait()
	var failed error // a host that does not read is waited for once
	give := func(apart bool) {
		for i := range loans {
			l := &loans[i]
			if l.err != nil || l.file == nil || shm.IsApart(l.file) != apart {
				continue
			}
			if failed == nil {
				failed = s.send(l.token, l.file)
			}
			if err := errors.Join(failed, shm.Close(l.file)); err != nil {
				l.err = &core.Error{Op: opDescriptor, Kind: core.ErrUnavailable, Err: err}
			}
			l.file = nil
		}
	}
	give(false) // a GPU driver's are where it has opened them
	shm.Apart(func() { give(true) })
}

// send sends a file to the host from where its descriptor is.
func (s *service) send(token uint64, file *os.File) (err error) {
	if s.apart != nil && shm.IsApart(file) {
		s.apart.Use(func(fd int) { err = fdpass.SendOn(fd, descriptorMessage(token), file) })
		return err
	}
	shm.Use(file, func() { err = sendDescriptor(s.side, token, file) })
	return err
}

func (s *service) Release(ctx context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	if err := s.ready("release"); err != nil {
		return nil, err
	}
	if n := len(req.GetLeases()) + len(req.GetTokens()); n > maxReleases {
		return nil, violation("release", fmt.Errorf("%d leases in one call, expected at most %d", n, maxReleases))
	}
	ids := s.grants.Take(req.GetTokens())
	for _, id := range req.GetLeases() {
		ids = append(ids, contract.LeaseID(id))
	}
	if err := s.release(ctx, ids...); err != nil {
		return nil, toStatus(err)
	}
	return &pb.ReleaseResponse{}, nil
}

func (s *service) release(ctx context.Context, ids ...contract.LeaseID) error {
	for _, id := range ids {
		s.grants.Remove(id)
	}
	return s.producer.Release(ctx, ids...)
}

func (s *service) Wait(ctx context.Context, _ *pb.WaitRequest) (*pb.WaitResponse, error) {
	if err := s.ready("wait"); err != nil {
		return nil, err
	}
	w, ok := s.producer.(contract.Waiter)
	if !ok {
		return nil, toStatus(&core.Error{Op: "wait", Kind: core.ErrUnsupported})
	}
	return &pb.WaitResponse{}, toStatus(w.Wait(ctx))
}

// violation is the status of a call that one of the sides got wrong.
func violation(op string, err error) error {
	return toStatus(&core.Error{Op: op, Kind: core.ErrProtocol, Err: err})
}
