package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/values"
	"github.com/ndbridge/ndbridge/internal/wire"
)

const (
	callLieEnv  = "HOSTILE_CALLS" // makes the test binary a plugin whose answers to calls are mutated, with this seed
	callWorkers = 4
	ownMessage  = segmentSize / callWorkers // how much of the segment each worker has for messages that are outside

	mutatedTarget, honestTarget = 1, 2
)

// callLiar answers calls. Those of the function "mutated" are damaged, also while the host reads them.
type callLiar struct {
	*liar
	seed     uint64
	file     *os.File // for calls
	calls    *shm.Mapping
	segment  *shm.Mapping // where arrays and long messages lie
	calm     atomic.Bool  // nothing is changed any more
	lastID   atomic.Uint64
	canceled atomic.Uint64

	mu      sync.Mutex
	workers []*handoff.MailboxServer
	honest  map[uint64]struct{} // leases in answers that were not damaged
}

// serveCallLies is the main function of such a plugin.
func serveCallLies(seed string) int {
	l, err := newCallLiar(seed)
	if err == nil {
		go l.scribble()
		err = wire.Serve(context.Background(), l.side, os.Stdout, func(r grpc.ServiceRegistrar) { pb.RegisterProducerServiceServer(r, l) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newCallLiar(seed string) (*callLiar, error) {
	side, err := fdpass.FromFD(3)
	if err != nil {
		return nil, err
	}
	l := &callLiar{liar: &liar{side: side}, honest: make(map[uint64]struct{})}
	var err1, err2, err3, err4, err5 error
	l.seed, err1 = strconv.ParseUint(seed, 10, 64)
	l.memory, err2 = shm.Create("segment", segmentSize)
	l.file, err3 = shm.Create("calls", calls.Size(callWorkers))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	l.segment, err4 = shm.Map(l.memory, segmentSize, true)
	l.calls, err5 = shm.Map(l.file, calls.Size(callWorkers), true)
	return l, errors.Join(err4, err5)
}

func (l *callLiar) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	return &pb.OpenResponse{Info: l.info(), Capabilities: &pb.Capabilities{Calls: &pb.Calls{
		Segment: uint64(calls.Segment), Size: calls.Size(callWorkers), Workers: callWorkers,
	}}}, nil
}

func (l *callLiar) Info(context.Context, *pb.InfoRequest) (*pb.InfoResponse, error) {
	info := l.info()
	l.mu.Lock()
	defer l.mu.Unlock()
	info.Leases = int64(len(l.honest))
	return &pb.InfoResponse{Info: info}, nil
}

func (l *callLiar) Descriptor(_ context.Context, req *pb.DescriptorRequest) (*pb.DescriptorResponse, error) {
	file := l.memory
	if req.GetSegment() == uint64(calls.Segment) {
		file = l.file
	}
	return &pb.DescriptorResponse{}, l.send(req.GetToken(), file)
}

func (l *callLiar) Release(_ context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	for _, id := range req.GetLeases() {
		l.end([]contract.LeaseID{contract.LeaseID(id)})
	}
	return &pb.ReleaseResponse{}, nil
}

func (l *callLiar) end(ids []contract.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.honest, uint64(id))
	}
}

func (l *callLiar) StartWorkers(_ context.Context, req *pb.StartWorkersRequest) (*pb.StartWorkersResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.workers); i < int(req.GetWorkers()); i++ {
		server, err := handoff.NewMailboxServer(l.mailbox(i), 1, time.Millisecond, l.answers(i))
		if err != nil {
			return nil, err
		}
		l.workers = append(l.workers, server)
	}
	return &pb.StartWorkersResponse{}, nil
}

// CancelCall says something else each time, also what no state is.
func (l *callLiar) CancelCall(context.Context, *pb.CancelCallRequest) (*pb.CancelCallResponse, error) {
	return &pb.CancelCallResponse{State: pb.CallState(l.canceled.Add(1) % 5)}, nil
}

func (l *callLiar) mailbox(worker int) []byte {
	const held = 4 * calls.MaxSegments
	size := int(handoff.MailboxSize(1))
	return l.calls.Bytes()[held+worker*size:][:size:size]
}

// answers answers the requests of a worker.
func (l *callLiar) answers(worker int) handoff.Handler {
	random := rand.New(rand.NewPCG(l.seed, uint64(worker)))
	return func(request, _ []byte) []byte {
		var r calls.Request
		var name string
		if err := r.Parse(request, nil); err != nil {
			panic(err)
		}
		l.end(r.Ended)
		switch {
		case r.Op == calls.OpFunc && values.Decode(r.Values, &name, nil) == nil && name == "mutated":
			return message(calls.Done, mutatedTarget, nil, nil)
		case r.Op == calls.OpFunc:
			l.calm.Store(true)
			return message(calls.Done, honestTarget, nil, nil)
		case r.Op != calls.OpCall:
			return message(calls.Done, 0, nil, nil)
		case r.Target == honestTarget:
			return l.honestAnswer()
		}
		if random.IntN(40) == 0 {
			time.Sleep(10 * time.Millisecond) // longer than some contexts
		}
		return mutated(random, l.answer(random, worker))
	}
}

// message writes an answer: docs/PROTOCOL.md has its bytes.
func message(kind calls.Kind, target uint64, leases [][]byte, form []byte) []byte {
	b := []byte{byte(kind), 0, 0, 0, 0, 0, 0, 0}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(leases)))
	b = binary.LittleEndian.AppendUint64(b, target)
	for _, lease := range leases {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(lease))), lease...)
	}
	return append(b, form...)
}

func (l *callLiar) lease(id uint64, layout *pb.Layout) []byte {
	return marshal(&pb.Lease{
		Id: id, Layout: layout, Framework: "liar", Route: pb.Route_ROUTE_SHARED_HEAP,
		Handle: &pb.Handle{Kind: &pb.Handle_Segment{Segment: &pb.Segment{Id: 1, Size: segmentSize, Sealed: true}}},
		Fence:  &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}},
	})
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// form gives a form with n arrays.
func form(n int) []byte {
	arrays := make([]any, n)
	for i := range arrays {
		arrays[i] = new(core.View)
	}
	next := -1
	b, err := values.Append(nil, map[string]any{"arrays": arrays, "text": "x", "rest": []any{1, 2.5, nil, true, []byte("y")}},
		func(*core.View) (int, error) { next++; return next, nil })
	if err != nil {
		panic(err)
	}
	return b
}

func (l *callLiar) honestAnswer() []byte {
	id := l.lastID.Add(1)
	l.mu.Lock()
	l.honest[id] = struct{}{}
	l.mu.Unlock()
	return message(calls.Done, 0, [][]byte{l.lease(id, honestLayout())}, form(1))
}

// answer gives an answer of any kind, which is still whole but for the IDs of leases.
func (l *callLiar) answer(random *rand.Rand, worker int) []byte {
	if random.IntN(5) == 0 {
		return message(calls.Kind(2), 0, nil, marshal(&pb.ErrorInfo{Kind: pb.ErrorKind(random.IntN(20)), Cause: "no", Op: "call"}))
	}
	leases := make([][]byte, random.IntN(4))
	for i := range leases {
		id := l.lastID.Add(1)
		switch random.IntN(10) {
		case 0:
			id = 0
		case 1:
			id = l.lastID.Load() / 2 // of one that was given before, and may stand
		}
		leases[i] = l.lease(id, honestLayout())
	}
	whole := message(calls.Done, 0, leases, form(len(leases)))
	if random.IntN(2) == 0 {
		return whole
	}
	const outside = 4
	start := worker * ownMessage
	inner := mutated(random, whole)
	copy(l.segment.Bytes()[start:][:ownMessage], inner)
	layout := &pb.Layout{
		Dtype: &pb.DType{Code: 1, Bits: 8, Lanes: 1}, Device: &pb.Device{Kind: pb.DeviceKind_DEVICE_KIND_CPU},
		Shape: []int64{int64(min(len(inner), ownMessage))}, Offset: int64(start),
	}
	if random.IntN(10) == 0 {
		layout.Shape, layout.Strides = []int64{1 << 40}, []int64{0} // more elements than there is memory
	}
	return message(outside, 0, [][]byte{l.lease(l.lastID.Add(1), layout)}, nil)
}

// mutated damages a message, or leaves it whole.
func mutated(random *rand.Rand, b []byte) []byte {
	at := func() int { return random.IntN(len(b)) }
	switch random.IntN(8) {
	case 0:
	case 1:
		for range 1 + random.IntN(4) {
			b[at()] ^= byte(1 << random.IntN(8))
		}
	case 2:
		b = b[:at()]
	case 3:
		b = append(b, make([]byte, random.IntN(1000))...)
	case 4: // how many leases there are
		binary.LittleEndian.PutUint32(b[8:], random.Uint32()>>random.IntN(32))
	case 5: // how long the first of them is
		if len(b) >= 24 {
			binary.LittleEndian.PutUint32(b[20:], random.Uint32()>>random.IntN(32))
		}
	case 6:
		b[0] = byte(random.IntN(6))
	case 7:
		for i := range b {
			b[i] = byte(random.Uint32())
		}
	}
	return b
}

// scribble changes the lengths and the bytes of answers, in a mailbox and beside it, while the host reads them.
func (l *callLiar) scribble() {
	const answer = 4096 + 0x4000 // where it begins in a mailbox
	random := rand.New(rand.NewPCG(l.seed, 99))
	for !l.calm.Load() {
		worker := random.IntN(callWorkers)
		l.mailbox(worker)[answer+random.IntN(300)] ^= byte(1 << random.IntN(8))
		l.segment.Bytes()[worker*ownMessage+random.IntN(300)] ^= byte(1 << random.IntN(8))
		time.Sleep(20 * time.Microsecond)
	}
}
