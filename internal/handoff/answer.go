package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
)

// What an answer says.
const (
	answerAsk   = 1 // ask by gRPC
	answerLease = 2
	answerDone  = 3 // to a request that only ends leases
	answerAgain = 4 // a lease on what has the description that the host knows
)

// The head of an answer: what differs from one lease on an array to the next.
const (
	answerKind        = 0x00
	answerFence       = 0x04 // the kind of fence
	answerLeaseID     = 0x08
	answerPage        = 0x10
	answerPageSize    = 0x18
	answerWord        = 0x20
	answerValue       = 0x28
	answerNumber      = 0x2c // of the description, for later requests; 0: none
	answerDescription = 0x30 // what stays the same begins here
)

const (
	fenceReady = 1
	fenceWord  = 2
)

const (
	describedWritable = 1 << iota
	describedReadOnly
	describedSealed
	describedStrides
)

// The kinds of handle have the numbers that they have in protobuf.
const (
	handleNone = 1 + iota
	handleSegment
	handleIPC
	handleVMM
	handlePool
)

// appendLease writes an answer with a lease behind b, which is empty. It reports false for a lease that
// this form does not have room for, or cannot say.
func appendLease(b []byte, l *core.Lease) ([]byte, bool) {
	b = append(b, make([]byte, answerDescription)...)
	b[answerKind] = answerLease
	putLeaseID(b, l.ID)
	if !putFence(b, l.Fence) {
		return nil, false
	}
	w := writer{b: b}
	w.description(l)
	return w.b, !w.bad && len(w.b) <= ring.MaxAnswer
}

// writer appends the parts of a description.
type writer struct {
	b   []byte
	bad bool // something does not fit
}

func (w *writer) u16(n int) {
	if n < 0 || n > 0xffff {
		w.bad = true
	}
	w.b = binary.LittleEndian.AppendUint16(w.b, uint16(n))
}

func (w *writer) u64(n uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, n) }

func (w *writer) text(s string) {
	w.u16(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) description(l *core.Lease) {
	layout := l.Layout
	rank, flags := layout.Rank(), byte(0)
	if l.Writable {
		flags |= describedWritable
	}
	if layout.ReadOnly() {
		flags |= describedReadOnly
	}
	if s, ok := l.Handle.(core.Segment); ok && s.Sealed {
		flags |= describedSealed
	}
	if !layout.DType().Packed() {
		flags |= describedStrides
	}
	w.b = append(w.b, byte(l.Route), byte(l.Reason), flags, handleKind(l.Handle))
	w.b = append(w.b, byte(layout.Device().Kind)+1, byte(rank))
	w.u16(layout.DType().Code())
	w.u16(layout.DType().Bits())
	w.u16(layout.DType().Lanes())
	w.u16(layout.Device().Index)
	w.u16(len(l.Quirks))
	w.u64(uint64(layout.Offset()))
	for axis := range rank {
		w.u64(uint64(layout.Dim(axis)))
	}
	if flags&describedStrides != 0 {
		for axis := range rank {
			w.u64(uint64(layout.Stride(axis)))
		}
	}
	w.handle(l.Handle)
	w.text(l.Framework)
	w.text(layout.Tag())
	for _, q := range l.Quirks {
		w.text(string(q))
	}
}

func handleKind(h core.Handle) byte {
	switch h.(type) {
	case core.Segment:
		return handleSegment
	case core.CUDAIPC:
		return handleIPC
	case core.CUDAVMM:
		return handleVMM
	case core.CUDAPool:
		return handlePool
	default:
		return handleNone
	}
}

func (w *writer) handle(h core.Handle) {
	switch h := h.(type) {
	case nil:
	case core.Segment:
		w.u64(uint64(h.ID))
		w.u64(uint64(h.Size))
	case core.CUDAIPC:
		w.u64(uint64(h.ID))
		w.u64(uint64(h.Size))
		w.b = append(append(w.b, h.GPU[:]...), h.Mem[:]...)
	case core.CUDAVMM:
		w.b = append(w.b, h.GPU[:]...)
		w.u16(len(h.Chunks))
		for i := 0; i < len(h.Chunks) && len(w.b) <= ring.MaxAnswer; i++ {
			w.u64(uint64(h.Chunks[i].ID))
			w.u64(uint64(h.Chunks[i].Size))
		}
	case core.CUDAPool:
		w.u64(uint64(h.ID))
		w.u64(uint64(h.Size))
		w.u64(uint64(h.Pool))
		w.b = append(append(w.b, h.GPU[:]...), h.Pointer[:]...)
	}
}

// kindOf gives what an answer from a side that is not trusted says.
func kindOf(answer []byte) (kind byte, err error) {
	if len(answer) < answerDescription || answer[1] != 0 || answer[2] != 0 || answer[3] != 0 {
		return 0, fmt.Errorf("an answer of %d bytes", len(answer))
	}
	if kind = answer[answerKind]; kind < answerAsk || kind > answerAgain {
		return 0, fmt.Errorf("an answer of kind %d", kind)
	}
	return kind, nil
}

// grants says whether an answer of that kind grants a lease.
func grants(kind byte) bool { return kind == answerLease || kind == answerAgain }

// leaseIDOf gives the ID of the lease that an answer grants.
func leaseIDOf(answer []byte) core.LeaseID {
	return core.LeaseID(binary.LittleEndian.Uint64(answer[answerLeaseID:]))
}

func putLeaseID(answer []byte, id core.LeaseID) {
	binary.LittleEndian.PutUint64(answer[answerLeaseID:], uint64(id))
}

// numberOf gives the number of the description of an answer that grants a lease.
func numberOf(answer []byte) uint32 { return binary.LittleEndian.Uint32(answer[answerNumber:]) }

func putNumber(answer []byte, number uint32) {
	binary.LittleEndian.PutUint32(answer[answerNumber:], number)
}

// putFence reports false for a fence that an answer cannot say.
func putFence(answer []byte, fence core.Fence) bool {
	kind, w := byte(fenceReady), core.CUDAWord{}
	switch f := fence.(type) {
	case core.Ready:
	case core.CUDAWord:
		kind, w = fenceWord, f
	default:
		return false
	}
	answer[answerFence] = kind
	binary.LittleEndian.PutUint64(answer[answerPage:], uint64(w.Page))
	binary.LittleEndian.PutUint64(answer[answerPageSize:], uint64(w.Size))
	binary.LittleEndian.PutUint64(answer[answerWord:], uint64(w.Offset))
	binary.LittleEndian.PutUint32(answer[answerValue:], w.Value)
	return true
}

// fenceOf reads the fence of an answer.
func fenceOf(answer []byte) (core.Fence, error) {
	w := core.CUDAWord{
		Page:   core.SegmentID(binary.LittleEndian.Uint64(answer[answerPage:])),
		Size:   int64(binary.LittleEndian.Uint64(answer[answerPageSize:])),
		Offset: int64(binary.LittleEndian.Uint64(answer[answerWord:])),
		Value:  binary.LittleEndian.Uint32(answer[answerValue:]),
	}
	switch kind := answer[answerFence]; {
	case kind == fenceReady && w == core.CUDAWord{}:
		return core.Ready{}, nil
	case kind != fenceWord:
		return nil, fmt.Errorf("a fence of kind %d", kind)
	case w.Offset < 0 || w.Offset%4 != 0 || w.Offset > w.Size-4:
		return nil, fmt.Errorf("a fence's word at byte %d of %d", w.Offset, w.Size)
	}
	return w, nil
}

// reader takes the parts of a description. Past the end there are zeros, and an error.
type reader struct {
	b   []byte
	err error
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.err = errors.New("a description that ends too early")
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() byte     { return r.bytes(1)[0] }
func (r *reader) u16() int     { return int(binary.LittleEndian.Uint16(r.bytes(2))) }
func (r *reader) u64() uint64  { return binary.LittleEndian.Uint64(r.bytes(8)) }
func (r *reader) text() string { return string(r.bytes(r.u16())) }

func (r *reader) ints(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = int(int64(r.u64()))
	}
	return out
}

func (r *reader) size() int64 {
	n := int64(r.u64())
	if n <= 0 {
		r.fail("memory of %d bytes", n)
	}
	return n
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// describe reads a description: a lease but for its ID and its fence.
func describe(description []byte) (core.Lease, error) {
	r := reader{b: description}
	var l core.Lease
	route, reason, flags, handle := r.u8(), r.u8(), r.u8(), r.u8()
	device, rank := r.u8(), int(r.u8())
	code, bits, lanes := r.u16(), r.u16(), r.u16()
	index, quirks := r.u16(), r.u16()
	offset := int(int64(r.u64()))
	switch {
	case flags >= describedStrides<<1:
		r.fail("flags %#x", flags)
	case rank > core.MaxRank:
		r.fail("%d axes, expected at most %d", rank, core.MaxRank)
	case device == 0 || device-1 == byte(core.CPU) && index != 0:
		r.fail("device %d of kind %d", index, device)
	case route > byte(core.RouteCUDAStaged) || reason > byte(core.ReasonMappedFile):
		r.fail("route %d, reason %d", route, reason)
	}
	if r.err != nil {
		return l, r.err
	}
	spec := core.LayoutSpec{
		Device: core.Device{Kind: core.DeviceKind(device - 1), Index: index}, Offset: offset,
		Shape: r.ints(rank), ReadOnly: flags&describedReadOnly != 0,
	}
	if flags&describedStrides != 0 {
		spec.Strides = r.ints(rank)
	}
	l.Route, l.Reason, l.Writable = core.Route(route), core.Reason(reason), flags&describedWritable != 0
	l.Handle = r.handle(handle, flags&describedSealed != 0)
	l.Framework, spec.Tag = r.text(), r.text()
	for range quirks {
		if r.err != nil {
			break
		}
		l.Quirks = append(l.Quirks, core.QuirkID(r.text()))
	}
	if len(r.b) != 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return l, r.err
	}
	var err error
	if spec.DType, err = core.NewDType(code, bits, lanes); err != nil {
		return l, err
	}
	l.Layout, err = core.NewLayout(spec)
	return l, err
}

func (r *reader) handle(kind byte, sealed bool) core.Handle {
	switch kind {
	case handleNone:
		return nil
	case handleSegment:
		return core.Segment{ID: core.SegmentID(r.u64()), Size: r.size(), Sealed: sealed}
	case handleIPC:
		return core.CUDAIPC{
			ID: core.SegmentID(r.u64()), Size: r.size(), GPU: core.UUID(r.bytes(16)), Mem: [64]byte(r.bytes(64)),
		}
	case handleVMM:
		return r.chunks()
	case handlePool:
		return core.CUDAPool{
			ID: core.SegmentID(r.u64()), Size: r.size(), Pool: core.SegmentID(r.u64()),
			GPU: core.UUID(r.bytes(16)), Pointer: [64]byte(r.bytes(64)),
		}
	default:
		r.fail("a handle of kind %d", kind)
		return nil
	}
}

func (r *reader) chunks() core.Handle {
	h := core.CUDAVMM{GPU: core.UUID(r.bytes(16))}
	var sum int64
	for n := r.u16(); n > 0 && r.err == nil; n-- {
		c := core.CUDAChunk{ID: core.SegmentID(r.u64()), Size: r.size()}
		if sum += c.Size; sum < 0 {
			r.fail("allocations of more than 2^63 bytes")
		}
		h.Chunks = append(h.Chunks, c)
	}
	if len(h.Chunks) == 0 {
		r.fail("no allocation")
	}
	return h
}
