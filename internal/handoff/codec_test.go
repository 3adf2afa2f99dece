package handoff

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func layoutOf(spec core.LayoutSpec) core.Layout {
	l, err := core.NewLayout(spec)
	if err != nil {
		panic(err)
	}
	return l
}

// examples are leases of all kinds.
func examples() map[string]core.Lease {
	f32 := core.DTypeOf[float32]()
	gpu := core.Device{Kind: core.CUDA, Index: 1}
	grid := core.LayoutSpec{DType: f32, Shape: []int{2, 3}, Strides: []int{4, 8}, Offset: 64}
	onGPU := grid
	onGPU.Device = gpu
	word := core.CUDAWord{Page: 9, Size: 4096, Offset: 8, Value: 77}
	return map[string]core.Lease{
		"segment": {
			ID: 5, Layout: layoutOf(grid), Handle: core.Segment{ID: 3, Size: 4096, Sealed: true}, Fence: core.Ready{},
			Framework: "numpy", Route: core.RouteSharedHeap,
		},
		"staged": {
			ID: 1 << 60, Layout: layoutOf(core.LayoutSpec{
				DType: core.DType(3<<24 | 8<<16 | 8), Shape: []int{4}, ReadOnly: true, Tag: "datetime64[ns]",
			}),
			Handle: core.Segment{ID: 4, Size: 32, Sealed: true}, Fence: core.Ready{}, Framework: "numpy",
			Route: core.RouteStaged, Reason: core.ReasonConverted, Quirks: []core.QuirkID{"numpy.a", "numpy.b"},
		},
		"packed": {
			ID: 6, Layout: layoutOf(core.LayoutSpec{DType: core.Int4, Shape: []int{3}}),
			Handle: core.Segment{ID: 4, Size: 2}, Fence: core.Ready{}, Framework: "jax", Route: core.RouteMappedFile,
		},
		"number": {
			ID: 7, Layout: layoutOf(core.LayoutSpec{DType: f32}), Handle: core.Segment{ID: 1, Size: 4},
			Fence: core.Ready{}, Framework: "torch", Route: core.RouteSharedHeap,
		},
		"empty": {
			ID: 8, Layout: layoutOf(core.LayoutSpec{DType: f32, Shape: []int{0, 5}}), Fence: core.Ready{},
			Framework: "torch", Route: core.RouteEmpty,
		},
		"ipc": {
			ID: 9, Layout: layoutOf(onGPU), Handle: core.CUDAIPC{ID: 2, Size: 1 << 20, GPU: core.UUID{1}, Mem: [64]byte{63: 2}},
			Fence: word, Framework: "torch", Route: core.RouteCUDAIPC,
		},
		"vmm": {
			ID: 10, Layout: layoutOf(onGPU), Handle: core.CUDAVMM{
				GPU: core.UUID{15: 1}, Chunks: []core.CUDAChunk{{ID: 3, Size: 2 << 20}, {ID: 4, Size: 2 << 20}},
			},
			Fence: word, Framework: "torch", Route: core.RouteCUDAVMM,
		},
		"pool": {
			ID: 11, Layout: layoutOf(onGPU), Handle: core.CUDAPool{
				ID: 3, Size: 1 << 20, GPU: core.UUID{1, 2}, Pool: 8, Pointer: [64]byte{1},
			},
			Fence: core.Ready{}, Framework: "cupy", Route: core.RouteCUDAPool,
		},
	}
}

func same(a, b core.Lease) bool {
	equal := a.Layout.Equal(b.Layout)
	a.Layout, b.Layout = core.Layout{}, core.Layout{}
	return equal && reflect.DeepEqual(a, b)
}

// TestAnswersAreFrozen: plugins and hosts of other releases read the same bytes, on either side. A
// difference is another protocol: see docs/PROTOCOL.md.
func TestAnswersAreFrozen(t *testing.T) {
	t.Parallel()
	for name, want := range examples() {
		b, ok := appendLease(nil, &want)
		if !ok {
			t.Fatalf("%s does not fit", name)
		}
		frozen(t, "answer-"+name, b)
		var source Source
		for range 2 { // again, from what is remembered
			got, err := source.decode(b, core.Request{}, nil)
			if err != nil || !same(got.Whole(), want) {
				t.Errorf("%s: %+v, %v; want %+v", name, got.Whole(), err, want)
			}
		}
	}
}

func TestRequestsAreFrozen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]request{
		"release": {op: opRelease, releases: []core.LeaseID{1, 1 << 63}, name: []byte{}},
		"named": {
			op: opLease, req: core.Request{Writable: true, Copy: core.CopyNever}, source: 3,
			name: []byte("frame"), releases: []core.LeaseID{4},
		},
		"known":    {op: opLease, source: 3, known: 0x0a0b0c0d, name: []byte{}, releases: []core.LeaseID{4}},
		"prepared": {op: opLease, req: core.Request{NoWait: true, Copy: core.CopyIfNeeded}, source: 0x01020304, name: []byte{}},
	} {
		b := appendRequest(nil, &want)
		frozen(t, "request-"+name, b)
		var got request
		if err := got.parse(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// frozen compares bytes with what they have always been: testdata has a dump of them.
func frozen(t *testing.T, name string, b []byte) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatalf("%v; the bytes are now\n%s", err, hex.Dump(b))
	}
	if got := hex.Dump(b); got != string(want) {
		t.Errorf("%s is\n%swant\n%s", name, got, want)
	}
}

// TestHostileAnswers: each is refused.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	segment, ipc, vmm := examples()["segment"], examples()["ipc"], examples()["vmm"]
	for name, edit := range map[string]func() (core.Lease, func(b []byte)){
		"past the segment":   func() (core.Lease, func([]byte)) { return segment, put64(answerDescription+0x10, 4090) },
		"before the segment": func() (core.Lease, func([]byte)) { return segment, put64(answerDescription+0x10, 1<<63) },
		"no memory":          func() (core.Lease, func([]byte)) { return segment, put64(answerDescription+0x40, 0) },
		"rank":               func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+5, 65) },
		"device":             func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+4, 5) },
		"CPU 1":              func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+12, 1) },
		"route":              func() (core.Lease, func([]byte)) { return segment, put8(answerDescription, 9) },
		"copied":             func() (core.Lease, func([]byte)) { return segment, put8(answerDescription, byte(core.RouteStaged)) },
		"reason":             func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+1, 10) },
		"flags":              func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+2, 0x10) },
		"writable":           func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+2, 0x0d) },
		"handle":             func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+3, 6) },
		"no handle":          func() (core.Lease, func([]byte)) { return segment, put8(answerDescription+3, 0) },
		"fence":              func() (core.Lease, func([]byte)) { return segment, put8(answerFence, 3) },
		"a fence on the CPU": func() (core.Lease, func([]byte)) { return segment, put8(answerFence, fenceWord) },
		"word's place":       func() (core.Lease, func([]byte)) { return ipc, put64(answerWord, 4096) },
		"word's alignment":   func() (core.Lease, func([]byte)) { return ipc, put64(answerWord, 2) },
		"word before page":   func() (core.Lease, func([]byte)) { return ipc, put64(answerWord, 1<<63) },
		"chunks overflow": func() (core.Lease, func([]byte)) {
			return vmm, func(b []byte) {
				put64(answerDescription+0x52, 1<<62)(b)
				put64(answerDescription+0x62, 1<<62)(b)
			}
		},
	} {
		l, change := edit()
		b, ok := appendLease(nil, &l)
		if !ok {
			t.Fatal(name)
		}
		if _, err := new(Source).decode(b, core.Request{}, nil); err != nil {
			t.Fatalf("%s: as it was: %v", name, err)
		}
		if change(b); len(b) > 0 {
			if got, err := new(Source).decode(b, core.Request{}, nil); err == nil {
				t.Errorf("%s: taken as %+v", name, got)
			}
		}
	}
	b, _ := appendLease(nil, &segment)
	for n := answerDescription; n < len(b); n++ {
		if got, err := new(Source).decode(b[:n], core.Request{}, nil); err == nil {
			t.Errorf("%d bytes of %d: taken as %+v", n, len(b), got)
		}
	}
	if _, err := new(Source).decode(append(b, 0), core.Request{}, nil); err == nil {
		t.Error("a byte too many")
	}
	for _, short := range [][]byte{nil, b[:answerDescription-1], {9: 0, 0x2f: 0}, append([]byte{5}, make([]byte, 60)...)} {
		if _, err := kindOf(short); err == nil {
			t.Errorf("an answer of %d bytes: taken", len(short))
		}
	}
}

// TestKnownDescriptions: an answer may leave out the description that the host has said it knows, and no
// other. The fence is the answer's own.
func TestKnownDescriptions(t *testing.T) {
	t.Parallel()
	const number = 0x01020304
	lease := examples()["ipc"]
	b, _ := appendLease(nil, &lease)
	putNumber(b, number)
	var source Source
	if _, err := source.decode(b, core.Request{}, nil); err != nil {
		t.Fatal(err)
	}
	known := source.last.Load()
	head := func() []byte {
		b := slices.Clone(b[:answerDescription])
		b[answerKind] = answerAgain
		return b
	}
	frozen(t, "answer-again", head())
	for _, fence := range []core.Fence{lease.Fence, core.CUDAWord{Page: 1, Size: 64, Offset: 4, Value: 5}, core.Ready{}, lease.Fence} {
		b := head()
		lease.ID++
		putLeaseID(b, lease.ID)
		lease.Fence = fence
		putFence(b, fence)
		if got, err := source.decode(b, core.Request{}, known); err != nil || !same(got.Whole(), lease) {
			t.Errorf("%+v, %v; want %+v", got.Whole(), err, lease)
		}
	}
	unnumbered := *known
	unnumbered.number = 0
	for name, c := range map[string]struct {
		edit  func(b []byte)
		req   core.Request
		known *described
	}{
		"of none":              {put8(0, answerAgain), core.Request{}, nil},
		"of another":           {put8(answerNumber, 5), core.Request{}, known},
		"of no number":         {put64(answerValue, 0), core.Request{}, &unnumbered},
		"for another request":  {put8(0, answerAgain), core.Request{NoWait: true}, known},
		"with a board's lease": {put64(answerLeaseID, 1<<63), core.Request{}, known},
		"with a false fence":   {put64(answerWord, 4096), core.Request{}, known},
	} {
		b := head()
		c.edit(b)
		if got, err := source.decode(b, c.req, c.known); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	if got, err := source.decode(append(head(), 0), core.Request{}, known); err == nil {
		t.Errorf("with a description: taken as %+v", got)
	}
}

func put8(at int, value byte) func(b []byte) { return func(b []byte) { b[at] = value } }

func put64(at int, value uint64) func(b []byte) {
	return func(b []byte) {
		for i := range 8 {
			b[at+i] = byte(value >> (8 * i))
		}
	}
}

// FuzzAnswer: whatever the other side writes is refused, or a lease that holds what leases promise and
// that reads the same when it is written again.
func FuzzAnswer(f *testing.F) {
	for _, l := range examples() {
		b, _ := appendLease(nil, &l)
		f.Add(b)
		b[answerKind] = answerAgain
		putNumber(b, 1)
		f.Add(b[:answerDescription])
	}
	lease := examples()["segment"]
	f.Fuzz(func(t *testing.T, b []byte) {
		if kind, err := kindOf(b); err != nil || !grants(kind) {
			return
		}
		known := &described{number: 1, lease: lease, ready: true}
		known.description, _ = appendLease(nil, &lease)
		known.description = known.description[answerDescription:]
		grant, err := new(Source).decode(b, core.Request{}, known)
		if err != nil {
			return
		}
		l := grant.Whole()
		if err := l.Check(core.Request{}); err != nil {
			t.Fatal(err)
		}
		again, ok := appendLease(nil, &l)
		if !ok {
			return // elements that share bytes have no strides of their own
		}
		if m, err := new(Source).decode(again, core.Request{}, nil); err != nil || !same(l, m.Whole()) {
			t.Fatalf("%+v is read again as %+v, %v", l, m.Whole(), err)
		}
	})
}

// FuzzRequest: likewise.
func FuzzRequest(f *testing.F) {
	f.Add(appendRequest(nil, &request{op: opLease, name: []byte("x"), releases: []core.LeaseID{1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		if r.parse(b) != nil {
			return
		}
		if again := appendRequest(nil, &r); string(again) != string(b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}
