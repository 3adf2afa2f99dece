package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// valid is a lease that leaseToCore accepts.
func valid() *pb.Lease {
	return &pb.Lease{
		Id: 1,
		Layout: &pb.Layout{
			Dtype: &pb.DType{Code: 2, Bits: 32, Lanes: 1}, Device: &pb.Device{Kind: pb.DeviceKind_DEVICE_KIND_CPU},
			Shape: []int64{2, 3}, Strides: []int64{12, 4}, Offset: 8,
		},
		Handle:    &pb.Handle{Kind: &pb.Handle_Segment{Segment: &pb.Segment{Id: 1, Size: 32}}},
		Fence:     &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}},
		Framework: "numpy",
		Route:     pb.Route_ROUTE_SHARED_HEAP,
	}
}

// hostileLeases are changes to a valid lease that make it one to be refused.
func hostileLeases() map[string]func(*pb.Lease) {
	empty := &pb.Handle{Kind: &pb.Handle_Empty{Empty: &pb.NoMemory{}}}
	segment := func(l *pb.Lease) *pb.Segment { return l.GetHandle().GetSegment() }
	return map[string]func(*pb.Lease){
		"no layout":               func(l *pb.Lease) { l.Layout = nil },
		"no dtype":                func(l *pb.Lease) { l.Layout.Dtype = nil },
		"no device":               func(l *pb.Lease) { l.Layout.Device = nil },
		"no handle":               func(l *pb.Lease) { l.Handle = nil },
		"empty handle":            func(l *pb.Lease) { l.Handle = &pb.Handle{} },
		"nil segment":             func(l *pb.Lease) { l.Handle = &pb.Handle{Kind: &pb.Handle_Segment{}} },
		"no fence":                func(l *pb.Lease) { l.Fence = nil },
		"empty fence":             func(l *pb.Lease) { l.Fence = &pb.Fence{} },
		"no route":                func(l *pb.Lease) { l.Route = pb.Route_ROUTE_UNSPECIFIED },
		"unknown route":           func(l *pb.Lease) { l.Route = 99 },
		"negative route":          func(l *pb.Lease) { l.Route = -1 },
		"unknown reason":          func(l *pb.Lease) { l.Reason = 99 },
		"unknown device":          func(l *pb.Lease) { l.Layout.Device.Kind = 77 },
		"unspecified device":      func(l *pb.Lease) { l.Layout.Device.Kind = 0 },
		"device index":            func(l *pb.Lease) { l.Layout.Device.Index = -1 },
		"second CPU":              func(l *pb.Lease) { l.Layout.Device.Index = 1 },
		"GPU memory in a file":    func(l *pb.Lease) { l.Layout.Device.Kind = pb.DeviceKind_DEVICE_KIND_CUDA },
		"unknown dtype code":      func(l *pb.Lease) { l.Layout.Dtype.Code = 200 },
		"huge dtype code":         func(l *pb.Lease) { l.Layout.Dtype.Code = math.MaxUint32 },
		"huge bits":               func(l *pb.Lease) { l.Layout.Dtype.Bits = math.MaxUint32 },
		"huge lanes":              func(l *pb.Lease) { l.Layout.Dtype.Lanes = math.MaxUint32 },
		"no lanes":                func(l *pb.Lease) { l.Layout.Dtype.Lanes = 0 },
		"pointers":                func(l *pb.Lease) { l.Layout.Dtype = &pb.DType{Code: 3, Bits: 64, Lanes: 1} },
		"rank 65":                 func(l *pb.Lease) { l.Layout.Shape = make([]int64, 65) },
		"rank of a million":       func(l *pb.Lease) { l.Layout.Shape = make([]int64, 1<<20) },
		"strides of a million":    func(l *pb.Lease) { l.Layout.Strides = make([]int64, 1<<20) },
		"fewer strides":           func(l *pb.Lease) { l.Layout.Strides = []int64{4} },
		"negative extent":         func(l *pb.Lease) { l.Layout.Shape[0] = -2 },
		"huge extent":             func(l *pb.Lease) { l.Layout.Shape[0] = math.MaxInt64 },
		"2^31 by 2^31 by 2^31":    func(l *pb.Lease) { l.Layout.Shape, l.Layout.Strides = []int64{1 << 31, 1 << 31, 1 << 31}, nil },
		"huge stride":             func(l *pb.Lease) { l.Layout.Strides[0] = math.MinInt64 },
		"span past the end":       func(l *pb.Lease) { l.Layout.Offset = 9 },
		"span before the start":   func(l *pb.Lease) { l.Layout.Strides[0] = -12 },
		"negative offset":         func(l *pb.Lease) { l.Layout.Offset = -1 },
		"huge offset":             func(l *pb.Lease) { l.Layout.Offset = math.MaxInt64 },
		"least offset":            func(l *pb.Lease) { l.Layout.Offset = math.MinInt64 },
		"segment too small":       func(l *pb.Lease) { segment(l).Size = 31 },
		"segment of no bytes":     func(l *pb.Lease) { segment(l).Size = 0 },
		"negative segment":        func(l *pb.Lease) { segment(l).Size = -1 },
		"elements without a file": func(l *pb.Lease) { l.Handle, l.Route = empty, pb.Route_ROUTE_EMPTY },
		"file without elements":   func(l *pb.Lease) { l.Layout.Shape[0] = 0 },
		"empty route with a file": func(l *pb.Lease) { l.Route = pb.Route_ROUTE_EMPTY },
		"no elements, no file, other route": func(l *pb.Lease) {
			l.Layout.Shape[0], l.Handle = 0, empty
		},
		"copy without a reason":    func(l *pb.Lease) { l.Route = pb.Route_ROUTE_STAGED },
		"reason without a copy":    func(l *pb.Lease) { l.Reason = pb.Reason_REASON_FROZEN },
		"a version of no time":     func(l *pb.Lease) { l.Version = 1 },
		"a time of no version":     func(l *pb.Lease) { l.Published = 1 },
		"no ID":                    func(l *pb.Lease) { l.Id = 0 },
		"writable without request": func(l *pb.Lease) { l.Writable = true },
		"long tag":                 func(l *pb.Lease) { l.Layout.Tag = strings.Repeat("x", maxLongText+1) },
		"long framework":           func(l *pb.Lease) { l.Framework = strings.Repeat("x", maxText+1) },
		"long quirk":               func(l *pb.Lease) { l.Quirks = []string{strings.Repeat("x", maxText+1)} },
		"many quirks":              func(l *pb.Lease) { l.Quirks = make([]string, maxList+1) },
	}
}

func TestHostileLeases(t *testing.T) {
	t.Parallel()
	if _, err := leaseToCore(valid(), contract.Request{}); err != nil {
		t.Fatalf("the valid lease is refused: %v", err)
	}
	if _, err := leaseToCore(nil, contract.Request{}); err == nil {
		t.Error("no lease at all is accepted")
	}
	for name, edit := range hostileLeases() {
		l := valid()
		edit(l)
		if got, err := leaseToCore(sent(t, l), contract.Request{}); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestLeaseMustFitTheRequest(t *testing.T) {
	t.Parallel()
	staged := func(l *pb.Lease) {
		l.Route, l.Reason = pb.Route_ROUTE_STAGED, pb.Reason_REASON_HEAP_OFF
	}
	for name, c := range map[string]struct {
		edit func(*pb.Lease)
		req  contract.Request
		ok   bool
	}{
		"a copy":                    {staged, contract.Request{}, true},
		"a copy, allowed":           {staged, contract.Request{Copy: contract.CopyIfNeeded}, true},
		"a copy, refused":           {staged, contract.Request{Copy: contract.CopyNever}, false},
		"writing asked, not given":  {func(*pb.Lease) {}, contract.Request{Writable: true}, false},
		"writing asked and given":   {func(l *pb.Lease) { l.Writable = true }, contract.Request{Writable: true}, true},
		"writing a copy":            {func(l *pb.Lease) { staged(l); l.Writable = true }, contract.Request{Writable: true}, false},
		"writing a read-only array": {func(l *pb.Lease) { l.Writable, l.Layout.ReadOnly = true, true }, contract.Request{Writable: true}, false},
		"writing a broadcast array": {func(l *pb.Lease) { l.Writable, l.Layout.Strides[0] = true, 0 }, contract.Request{Writable: true}, false},
	} {
		l := valid()
		c.edit(l)
		if _, err := leaseToCore(l, c.req); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want accepted %v", name, err, c.ok)
		}
	}
}
