package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Callable is a contract.Producer whose functions can be called.
type Callable interface {
	// Callee gives what answers the calls of one host.
	Callee() calls.Callee
}

// callsToProto gives nil for no calls.
func callsToProto(s calls.Settings) *pb.CallSettings {
	if s.Workers == 0 {
		return nil
	}
	return &pb.CallSettings{Workers: uint32(s.Mailboxes()), Spin: int64(s.Spin)}
}

func callsToCore(s *pb.CallSettings) (calls.Settings, error) {
	switch workers, spin := s.GetWorkers(), s.GetSpin(); {
	case s == nil:
		return calls.Settings{}, nil
	case workers < 1 || workers > calls.MaxWorkers+calls.MaxLanes || spin < 0 || spin > int64(maxSpin):
		return calls.Settings{}, fmt.Errorf("%d workers, with a spin of %d ns", workers, spin)
	}
	return calls.Settings{Workers: int(s.GetWorkers()), Spin: time.Duration(s.GetSpin())}, nil
}

func callMemoryToProto(m calls.Memory) *pb.Calls {
	return &pb.Calls{Segment: uint64(m.Segment), Size: m.Size, Workers: uint32(m.Mailboxes)}
}

// callMemoryToCore leaves the check to who maps it.
func callMemoryToCore(m *pb.Calls) calls.Memory {
	return calls.Memory{
		Segment: contract.SegmentID(m.GetSegment()), Size: m.GetSize(), Mailboxes: int(min(m.GetWorkers(), calls.MaxWorkers+calls.MaxLanes+1)),
	}
}

func callStates() []pair[calls.State, pb.CallState] {
	return []pair[calls.State, pb.CallState]{
		{calls.NeverBegan, pb.CallState_CALL_STATE_NEVER_BEGAN},
		{calls.Interrupted, pb.CallState_CALL_STATE_INTERRUPTED},
		{calls.Finished, pb.CallState_CALL_STATE_FINISHED},
	}
}

// callCodec implements calls.Codec.
type callCodec struct {
	codec
	layouts *sync.Pool // of *pb.Layout
}

func newCallCodec() callCodec {
	return callCodec{layouts: &sync.Pool{New: func() any { return newLayout() }}}
}

func (c callCodec) AppendLayout(b []byte, l core.Layout) ([]byte, error) {
	message, _ := c.layouts.Get().(*pb.Layout)
	defer c.layouts.Put(message)
	if err := setLayout(message, l); err != nil {
		return b, err
	}
	return proto.MarshalOptions{}.MarshalAppend(b, message)
}

func (callCodec) Layout(b []byte) (core.Layout, error) {
	message := new(pb.Layout)
	if err := proto.Unmarshal(b, message); err != nil {
		return core.Layout{}, err
	}
	return layoutToCore(message)
}

func (callCodec) AppendError(b []byte, err error) []byte {
	b, _ = proto.MarshalOptions{}.MarshalAppend(b, errorToProto(err)) // its texts are UTF-8, so it never fails
	return b
}

func (callCodec) Error(b []byte) error {
	message := new(pb.ErrorInfo)
	if err := proto.Unmarshal(b, message); err != nil {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	return errorToCore(message)
}

// OpenCalls maps the memory for calls that the other side has announced when the session was opened. The client is
// nil if the other side announced nothing; an error that wraps core.ErrProtocol says that it lied.
func (c *Client) OpenCalls(ctx context.Context, room calls.Room, settings calls.Settings) (*calls.Client, error) {
	c.mu.Lock()
	memory := c.calls
	c.mu.Unlock()
	if memory == (calls.Memory{}) {
		return nil, nil //nolint:nilnil // see above
	}
	file, err := c.Descriptor(ctx, memory.Segment, true)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it
	client, err := calls.NewClient(file, memory, newCallCodec(), c, room, settings)
	if err != nil {
		return nil, c.violated("open", "", fmt.Errorf("calls: %w", err))
	}
	return client, nil
}

// Workers implements calls.Remote.
func (c *Client) Workers(ctx context.Context, n int) error {
	callCtx, done := c.begin(ctx)
	defer done()
	_, err := c.rpc.StartWorkers(callCtx, &pb.StartWorkersRequest{Workers: uint32(n)}, callOptions()...)
	if err != nil {
		return c.failed(ctx, "call", "", err)
	}
	return nil
}

// Cancel implements calls.Remote.
func (c *Client) Cancel(ctx context.Context, worker int, number uint64) (calls.State, error) {
	const op = "cancel"
	callCtx, done := c.begin(ctx)
	defer done()
	resp, err := c.rpc.CancelCall(callCtx, &pb.CancelCallRequest{Worker: uint32(worker), Number: number}, callOptions()...)
	if err != nil {
		return 0, c.failed(ctx, op, "", err)
	}
	state, err := enumToCore(callStates(), resp.GetState())
	if err != nil {
		return 0, c.violated(op, "", err)
	}
	return state, nil
}

// Adopt hands memory to the program, under a number of the caller's. The files stay the caller's.
func (c *Client) Adopt(ctx context.Context, segment uint32, files []*os.File, a calls.Adoption) error {
	const op = "adopt"
	callCtx, done := c.begin(context.WithoutCancel(ctx)) // what was sent is taken
	defer done()
	req := &pb.AdoptSegmentRequest{Segment: segment, Size: a.Size, Writable: a.Writable}
	var tokens []uint64
	for range files {
		tokens = append(tokens, newToken())
	}
	var err error
	switch h := a.Handle.(type) {
	case nil:
		req.Token = tokens[0]
	case contract.CUDAVMM:
		named := contract.CUDAVMM{GPU: h.GPU}
		for i, chunk := range h.Chunks {
			named.Chunks = append(named.Chunks, contract.CUDAChunk{ID: contract.SegmentID(tokens[i]), Size: chunk.Size})
		}
		req.Handle, err = handleToProto(named)
	default:
		req.Handle, err = handleToProto(h)
	}
	if err != nil {
		return c.violated(op, "", err)
	}
	for i, f := range files {
		if err := sendDescriptor(c.side.conn, tokens[i], f); err != nil {
			return c.gone(ctx, op, "", err)
		}
	}
	if _, err := c.rpc.AdoptSegment(callCtx, req, callOptions()...); err != nil {
		return c.failed(ctx, op, "", err)
	}
	return nil
}

// Forget takes such memory back.
func (c *Client) Forget(ctx context.Context, segment uint32) error {
	callCtx, done := c.begin(ctx)
	defer done()
	_, err := c.rpc.ForgetSegment(callCtx, &pb.ForgetSegmentRequest{Segment: segment}, callOptions()...)
	if err != nil {
		return c.failed(ctx, "forget", "", err)
	}
	return nil
}

// callable makes the memory for the calls that the host wishes, if the producer's functions can be called.
func (s *service) callable(wish calls.Settings) (*calls.Server, error) {
	p, ok := s.producer.(Callable)
	if !ok || wish.Workers == 0 {
		return nil, nil //nolint:nilnil // then there are no calls
	}
	return calls.NewServer(p.Callee(), newCallCodec(), wish)
}

// serving gives what serves calls, or the error of a request for which nothing does.
func (s *service) serving(op string) (*calls.Server, error) {
	if err := s.ready(op); err != nil {
		return nil, err
	}
	if c := s.calls.Load(); c != nil {
		return c, nil
	}
	return nil, toStatus(&core.Error{Op: op, Kind: core.ErrUnsupported, Err: errors.New("no calls are served")})
}

func (s *service) StartWorkers(_ context.Context, req *pb.StartWorkersRequest) (*pb.StartWorkersResponse, error) {
	c, err := s.serving("call")
	if err != nil {
		return nil, err
	}
	if err := c.Start(int(req.GetWorkers())); err != nil {
		return nil, toStatus(err)
	}
	return &pb.StartWorkersResponse{}, nil
}

func (s *service) AdoptSegment(ctx context.Context, req *pb.AdoptSegmentRequest) (*pb.AdoptSegmentResponse, error) {
	const op = "adopt"
	a := calls.Adoption{Size: req.GetSize(), Writable: req.GetWritable()}
	tokens := []uint64{req.GetToken()}
	if req.GetHandle() != nil {
		var err error
		if a.Handle, tokens, err = adopted(req.GetHandle()); err != nil {
			return nil, violation(op, err)
		}
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close() // nothing was written
		}
	}()
	for _, token := range tokens {
		f, err := s.files.take(ctx, token)
		if err != nil {
			return nil, violation(op, err)
		}
		files = append(files, f)
	}
	c, err := s.serving(op)
	if err != nil {
		return nil, err
	}
	if err := c.Adopt(req.GetSegment(), files, a); err != nil {
		return nil, toStatus(err)
	}
	return &pb.AdoptSegmentResponse{}, nil
}

// adopted reads a handle of memory on a GPU, and the tokens of the descriptors that belong to it.
func adopted(message *pb.Handle) (h contract.Handle, tokens []uint64, err error) {
	if h, err = handleToCore(message); err != nil {
		return nil, nil, err
	}
	switch h := h.(type) {
	case contract.CUDAIPC:
		return h, nil, nil
	case contract.CUDAVMM:
		if len(h.Chunks) > calls.MaxChunks {
			return nil, nil, fmt.Errorf("%d allocations, expected at most %d", len(h.Chunks), calls.MaxChunks)
		}
		for _, chunk := range h.Chunks {
			tokens = append(tokens, uint64(chunk.ID))
		}
		return h, tokens, nil
	default:
		return nil, nil, fmt.Errorf("memory of type %T", h)
	}
}

func (s *service) ForgetSegment(_ context.Context, req *pb.ForgetSegmentRequest) (*pb.ForgetSegmentResponse, error) {
	c, err := s.serving("forget")
	if err != nil {
		return nil, err
	}
	c.Forget(req.GetSegment())
	return &pb.ForgetSegmentResponse{}, nil
}

func (s *service) CancelCall(_ context.Context, req *pb.CancelCallRequest) (*pb.CancelCallResponse, error) {
	const op = "cancel"
	c, err := s.serving(op)
	if err != nil {
		return nil, err
	}
	state, err := c.Cancel(int(req.GetWorker()), req.GetNumber())
	if err != nil {
		return nil, toStatus(err)
	}
	message, err := enumToProto(callStates(), state)
	if err != nil {
		return nil, violation(op, err)
	}
	return &pb.CancelCallResponse{State: message}, nil
}

// maxArrivals bounds the descriptors that came and were not asked for yet.
const maxArrivals = 4 * calls.MaxChunks

// arrivals are descriptors that the host has sent, by the token of the request that they belong to. The zero value is
// ready.
type arrivals struct {
	mu     sync.Mutex
	closed bool
	files  map[uint64]*os.File
	came   chan struct{} // closed when one more has come
}

// Deliver takes a message of the host's that carries a descriptor, and reports whether it is one. It takes the files
// over if it is.
func (s *Server) Deliver(msg []byte, files []*os.File) bool {
	if len(msg) != descriptorSize || msg[0] != descriptorKind || len(files) != 1 {
		return false
	}
	return s.service.files.put(binary.LittleEndian.Uint64(msg[1:]), files[0])
}

func (a *arrivals) put(token uint64, f *os.File) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.files) == maxArrivals || a.files[token] != nil {
		return false
	}
	if a.files == nil {
		a.files = make(map[uint64]*os.File)
	}
	a.files[token] = f
	if a.came != nil {
		close(a.came)
		a.came = nil
	}
	return true
}

// take waits for the descriptor of a request, which was sent before it.
func (a *arrivals) take(ctx context.Context, token uint64) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, descriptorWait, fmt.Errorf("the descriptor did not come within %v", descriptorWait))
	defer cancel()
	for {
		a.mu.Lock()
		f := a.files[token]
		if f != nil {
			delete(a.files, token)
			a.mu.Unlock()
			return f, nil
		}
		if a.came == nil {
			a.came = make(chan struct{})
		}
		came := a.came
		a.mu.Unlock()
		select {
		case <-came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// close closes those that nobody has asked for.
func (a *arrivals) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, f := range a.files {
		_ = f.Close() // never used
	}
	clear(a.files)
}

var (
	_ calls.Remote = (*Client)(nil)
	_ calls.Codec  = callCodec{}
)
