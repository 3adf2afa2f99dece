package wire

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// TestEnumsAreComplete holds both enumerations of each table to it: every value of core that has a
// name, and every value of the protocol, is there exactly once.
func TestEnumsAreComplete(t *testing.T) {
	t.Parallel()
	checkEnum(t, deviceKinds(), 0, pb.DeviceKind_DEVICE_KIND_UNSPECIFIED.Descriptor(), false)
	checkEnum(t, routes(), 1, pb.Route_ROUTE_UNSPECIFIED.Descriptor(), false)
	checkEnum(t, reasons(), 0, pb.Reason_REASON_UNSPECIFIED.Descriptor(), true)
	checkEnum(t, copyPolicies(), 0, pb.CopyPolicy_COPY_POLICY_UNSPECIFIED.Descriptor(), true)
	checkEnum(t, effects(), 1, pb.Effect_EFFECT_UNSPECIFIED.Descriptor(), false)
}

func checkEnum[C ~uint8, P interface {
	comparable
	protoreflect.Enum
}](t *testing.T, table []pair[C, P], first C, wire protoreflect.EnumDescriptor, zero bool,
) {
	t.Helper()
	want := wire.Values().Len()
	if !zero {
		want-- // the unspecified value never crosses
	}
	if len(table) != want {
		t.Errorf("%s: %d values in the table, %d in the protocol", wire.Name(), len(table), want)
	}
	for i, p := range table {
		if p.core != first+C(i) {
			t.Errorf("%s: entry %d is %v, want %v: values of core are missing", wire.Name(), i, p.core, first+C(i))
		}
		if got, err := enumToCore(table, p.wire); err != nil || got != p.core {
			t.Errorf("%s: %v comes back as %v, %v", wire.Name(), p.core, got, err)
		}
	}
	if s, ok := any(first + C(len(table))).(interface{ MarshalText() ([]byte, error) }); ok {
		if text, err := s.MarshalText(); err == nil {
			t.Errorf("%s: core's value %q is not in the table", wire.Name(), text)
		}
	}
	if _, err := enumToProto(table, C(200)); err == nil {
		t.Errorf("%s: an unknown value of core crosses", wire.Name())
	}
}

func mustLayout(t testing.TB, s core.LayoutSpec) core.Layout {
	t.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sent gives what arrives of a message.
func sent[M proto.Message](t testing.TB, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}

func TestLeasesCross(t *testing.T) {
	t.Parallel()
	opaque, err := core.Opaque(24)
	if err != nil {
		t.Fatal(err)
	}
	segment := core.Segment{ID: math.MaxUint64, Size: 1 << 40, Sealed: true}
	base := core.Lease{ID: 7, Handle: segment, Fence: core.Ready{}, Framework: "numpy", Route: core.RouteSharedHeap}
	for name, c := range map[string]struct {
		spec core.LayoutSpec
		edit func(*core.Lease)
		req  core.Request
	}{
		"plain":     {core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}}, nil, core.Request{}},
		"rank 0":    {core.LayoutSpec{DType: core.Complex128, Offset: 16}, nil, core.Request{}},
		"reversed":  {core.LayoutSpec{DType: core.Int16, Shape: []int{5}, Strides: []int{-2}, Offset: 8}, nil, core.Request{}},
		"broadcast": {core.LayoutSpec{DType: core.Bool, Shape: []int{1 << 40}, Strides: []int{0}}, nil, core.Request{}},
		"packed":    {core.LayoutSpec{DType: core.Int4, Shape: []int{3, 3}}, nil, core.Request{}},
		"rank 64":   {core.LayoutSpec{DType: core.Uint8, Shape: slices.Repeat([]int{1}, 64)}, nil, core.Request{}},
		"opaque":    {core.LayoutSpec{DType: opaque, Shape: []int{2}, Tag: "[('a', '<i4')]", ReadOnly: true}, nil, core.Request{}},
		"pinned": {
			core.LayoutSpec{DType: core.Uint8, Shape: []int{1}, Device: core.Device{Kind: core.CUDAPinned, Index: 3}},
			nil,
			core.Request{},
		},
		"writable": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4}},
			func(l *core.Lease) { l.Writable = true },
			core.Request{Writable: true, Copy: core.CopyNever},
		},
		"staged": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4}},
			func(l *core.Lease) {
				l.Route, l.Reason = core.RouteStaged, core.ReasonFrozen
				l.Quirks = []core.QuirkID{"numpy.a", "numpy.b"}
			},
			core.Request{Copy: core.CopyIfNeeded},
		},
		"empty": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4, 0}},
			func(l *core.Lease) { l.Route, l.Handle = core.RouteEmpty, nil },
			core.Request{},
		},
	} {
		want := base
		want.Layout = mustLayout(t, c.spec)
		if c.edit != nil {
			c.edit(&want)
		}
		message, err := leaseToProto(want)
		if err != nil {
			t.Errorf("%s: leaseToProto: %v", name, err)
			continue
		}
		got, err := leaseToCore(sent(t, message), c.req)
		if err != nil {
			t.Errorf("%s: leaseToCore: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got.Layout.Spec(), want.Layout.Spec()) {
			t.Errorf("%s: layout %+v arrived as %+v", name, want.Layout.Spec(), got.Layout.Spec())
		}
		got.Layout, want.Layout = core.Layout{}, core.Layout{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v arrived as %+v", name, want, got)
		}
	}
}

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
		"writable without request": func(l *pb.Lease) { l.Writable = true },
		"long tag":                 func(l *pb.Lease) { l.Layout.Tag = strings.Repeat("x", maxLongText+1) },
		"long framework":           func(l *pb.Lease) { l.Framework = strings.Repeat("x", maxText+1) },
		"long quirk":               func(l *pb.Lease) { l.Quirks = []string{strings.Repeat("x", maxText+1)} },
		"many quirks":              func(l *pb.Lease) { l.Quirks = make([]string, maxList+1) },
	}
}

func TestHostileLeases(t *testing.T) {
	t.Parallel()
	if _, err := leaseToCore(valid(), core.Request{}); err != nil {
		t.Fatalf("the valid lease is refused: %v", err)
	}
	if _, err := leaseToCore(nil, core.Request{}); err == nil {
		t.Error("no lease at all is accepted")
	}
	for name, edit := range hostileLeases() {
		l := valid()
		edit(l)
		if got, err := leaseToCore(sent(t, l), core.Request{}); err == nil {
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
		req  core.Request
		ok   bool
	}{
		"a copy":                    {staged, core.Request{}, true},
		"a copy, allowed":           {staged, core.Request{Copy: core.CopyIfNeeded}, true},
		"a copy, refused":           {staged, core.Request{Copy: core.CopyNever}, false},
		"writing asked, not given":  {func(*pb.Lease) {}, core.Request{Writable: true}, false},
		"writing asked and given":   {func(l *pb.Lease) { l.Writable = true }, core.Request{Writable: true}, true},
		"writing a copy":            {func(l *pb.Lease) { staged(l); l.Writable = true }, core.Request{Writable: true}, false},
		"writing a read-only array": {func(l *pb.Lease) { l.Writable, l.Layout.ReadOnly = true, true }, core.Request{Writable: true}, false},
		"writing a broadcast array": {func(l *pb.Lease) { l.Writable, l.Layout.Strides[0] = true, 0 }, core.Request{Writable: true}, false},
	} {
		l := valid()
		c.edit(l)
		if _, err := leaseToCore(l, c.req); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want accepted %v", name, err, c.ok)
		}
	}
}

type otherFence struct{ core.Fence }

type otherHandle struct{ core.Handle }

func TestToProtoRefusesUnknownValues(t *testing.T) {
	t.Parallel()
	layout := mustLayout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	good := core.Lease{Layout: layout, Fence: core.Ready{}, Route: core.RouteMappedFile, Handle: core.Segment{Size: 1}}
	if _, err := leaseToProto(good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*core.Lease){
		"route":  func(l *core.Lease) { l.Route = core.RouteNone },
		"reason": func(l *core.Lease) { l.Reason = 200 },
		"fence":  func(l *core.Lease) { l.Fence = nil },
		"fence2": func(l *core.Lease) { l.Fence = otherFence{} },
		"handle": func(l *core.Lease) { l.Handle = otherHandle{} },
	} {
		l := good
		edit(&l)
		if m, err := leaseToProto(l); err == nil {
			t.Errorf("%s: sent as %v", name, m)
		}
	}
	if m, err := infoToProto(core.Info{Frameworks: []core.Framework{{Quirks: []core.Quirk{{ID: "a.b"}}}}}); err == nil {
		t.Errorf("a quirk without an effect is sent as %v", m)
	}
	if m, err := settingsToProto(Settings{Adapters: []AdapterSettings{{Copy: 9}}}); err == nil {
		t.Errorf("an unknown copy policy is sent as %v", m)
	}
}

func TestInfoCrosses(t *testing.T) {
	t.Parallel()
	quirk := core.Quirk{
		ID: "numpy.q", Framework: "numpy", Since: "1.2", Until: "2.0", Protocol: "dlpack", Summary: "s", Remedy: "r",
		Effect: core.EffectCorrect, Upstream: "u",
	}
	want := core.Info{
		Program: "camera", Plugin: "all 0.1.0", Interpreter: "CPython 3.11.7 (/usr/bin/python3)", PID: 12, SharedHeap: "on",
		Frameworks: []core.Framework{{Name: "numpy", Version: "1.9", Quirks: []core.Quirk{quirk}}, {Name: "torch"}},
		Adapters:   []string{"numpy", "torch"}, Leases: 3,
	}
	message, err := infoToProto(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := infoToCore(sent(t, message)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v arrived as %+v, %v", want, got, err)
	}
	if bad := "caf\xe9"; text(bad) != "caf\uFFFD" {
		t.Errorf("text(%q) = %q", bad, text(bad))
	}
}

func TestHostileInfo(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxText+1)
	quirks := func(q *pb.Quirk) *pb.Info {
		return &pb.Info{Frameworks: []*pb.Framework{{Quirks: []*pb.Quirk{q}}}}
	}
	for name, m := range map[string]*pb.Info{
		"nil":              nil,
		"process id":       {Pid: -1},
		"leases":           {Leases: -1},
		"program":          {Program: long},
		"plugin":           {Plugin: long},
		"interpreter":      {Interpreter: long},
		"heap":             {SharedHeap: long},
		"adapters":         {Adapters: make([]string, maxList+1)},
		"adapter":          {Adapters: []string{long}},
		"frameworks":       {Frameworks: make([]*pb.Framework, maxList+1)},
		"framework":        {Frameworks: []*pb.Framework{{Name: long}}},
		"version":          {Frameworks: []*pb.Framework{{Version: long}}},
		"quirks":           {Frameworks: []*pb.Framework{{Quirks: make([]*pb.Quirk, maxList+1)}}},
		"quirk effect":     quirks(&pb.Quirk{Id: "a"}),
		"quirk effect 99":  quirks(&pb.Quirk{Id: "a", Effect: 99}),
		"quirk id":         quirks(&pb.Quirk{Id: long, Effect: pb.Effect_EFFECT_STAGE}),
		"quirk remedy":     quirks(&pb.Quirk{Remedy: long, Effect: pb.Effect_EFFECT_STAGE}),
		"nil in the lists": {Frameworks: []*pb.Framework{{Quirks: []*pb.Quirk{nil}}}},
	} {
		if got, err := infoToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestEntriesCross(t *testing.T) {
	t.Parallel()
	want := core.Entry{
		Name: `batch["x"]`, Framework: "numpy", Published: true,
		Layout: mustLayout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{3}}),
	}
	message, err := entryToProto(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := entryToCore(sent(t, message))
	if err != nil || got.Name != want.Name || got.Framework != want.Framework || !got.Published ||
		!reflect.DeepEqual(got.Layout.Spec(), want.Layout.Spec()) || got.Err != nil {
		t.Errorf("%+v arrived as %+v, %v", want, got, err)
	}
	cause := &core.Error{Op: "list", Array: "o", Kind: core.ErrDType, Remedy: "publish a copy", Err: errors.New("object")}
	if message, err = entryToProto(core.Entry{Name: "o", Err: cause}); err != nil {
		t.Fatal(err)
	}
	got, err = entryToCore(sent(t, message))
	if e, ok := errors.AsType[*core.Error](got.Err); err != nil || !ok || !errors.Is(e, core.ErrDType) ||
		!e.Remote || e.Error() != cause.Error() {
		t.Errorf("%v arrived as %v, %v", cause, got.Err, err)
	}
	for name, m := range map[string]*pb.Entry{
		"nothing":   {},
		"nil":       nil,
		"name":      {Name: strings.Repeat("x", maxText+1), Error: &pb.ErrorInfo{}},
		"framework": {Framework: strings.Repeat("x", maxText+1), Error: &pb.ErrorInfo{}},
		"layout":    {Name: "x", Layout: &pb.Layout{}},
	} {
		if got, err := entryToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestSettingsCross(t *testing.T) {
	t.Parallel()
	want := Settings{Program: "camera", Adapters: []AdapterSettings{
		{Name: "numpy", Copy: core.CopyNever, DisabledQuirks: []core.QuirkID{"numpy.q"}}, {Name: "torch"},
	}}
	message, err := settingsToProto(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := settingsToCore(sent(t, message)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v arrived as %+v, %v", want, got, err)
	}
	long := strings.Repeat("x", maxText+1)
	for name, m := range map[string]*pb.Settings{
		"program":  {Program: long},
		"adapters": {Adapters: make([]*pb.AdapterSettings, maxList+1)},
		"adapter":  {Adapters: []*pb.AdapterSettings{{Name: long}}},
		"policy":   {Adapters: []*pb.AdapterSettings{{Copy: 9}}},
		"quirks":   {Adapters: []*pb.AdapterSettings{{DisabledQuirks: make([]string, maxList+1)}}},
	} {
		if got, err := settingsToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestTextIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	long := "start " + strings.Repeat("é", maxText) + " end"
	got := text(long)
	if len(got) > maxText || !strings.HasPrefix(got, "start ") || !strings.HasSuffix(got, " end") ||
		!strings.Contains(got, cutIndicator) || strings.Contains(got, "\uFFFD") {
		t.Errorf("%d bytes became %d: %.20q...%q", len(long), len(got), got, got[len(got)-10:])
	}
	for _, s := range []string{"", "short", strings.Repeat("x", maxText)} {
		if text(s) != s {
			t.Errorf("text of %d bytes changed", len(s))
		}
	}
}
