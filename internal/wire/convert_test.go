package wire

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

func mustLayout(tb testing.TB, s core.LayoutSpec) core.Layout {
	tb.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// sent gives what arrives of a message.
func sent[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	typed, ok := out.(M)
	if !ok {
		t.Fatalf("%T became %T", m, out)
	}
	return typed
}

func TestLeasesCross(t *testing.T) {
	t.Parallel()
	opaque, err := core.Opaque(24)
	if err != nil {
		t.Fatal(err)
	}
	segment := contract.Segment{ID: math.MaxUint64, Size: 1 << 40, Sealed: true}
	base := contract.Lease{ID: 7, Handle: segment, Fence: contract.Ready{}, Framework: "numpy", Route: contract.RouteSharedHeap}
	for name, c := range map[string]struct {
		spec core.LayoutSpec
		edit func(*contract.Lease)
		req  contract.Request
	}{
		"plain":     {core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}}, nil, contract.Request{}},
		"rank 0":    {core.LayoutSpec{DType: core.Complex128, Offset: 16}, nil, contract.Request{}},
		"reversed":  {core.LayoutSpec{DType: core.Int16, Shape: []int{5}, Strides: []int{-2}, Offset: 8}, nil, contract.Request{}},
		"broadcast": {core.LayoutSpec{DType: core.Bool, Shape: []int{1 << 40}, Strides: []int{0}}, nil, contract.Request{}},
		"packed":    {core.LayoutSpec{DType: core.Int4, Shape: []int{3, 3}}, nil, contract.Request{}},
		"rank 64":   {core.LayoutSpec{DType: core.Uint8, Shape: slices.Repeat([]int{1}, 64)}, nil, contract.Request{}},
		"opaque":    {core.LayoutSpec{DType: opaque, Shape: []int{2}, Tag: "[('a', '<i4')]", ReadOnly: true}, nil, contract.Request{}},
		"pinned": {
			core.LayoutSpec{DType: core.Uint8, Shape: []int{1}, Device: core.Device{Kind: core.CUDAPinned, Index: 3}},
			nil,
			contract.Request{},
		},
		"writable": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4}},
			func(l *contract.Lease) { l.Writable = true },
			contract.Request{Writable: true, Copy: contract.CopyNever},
		},
		"staged": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4}},
			func(l *contract.Lease) {
				l.Route, l.Reason = contract.RouteStaged, contract.ReasonFrozen
				l.Quirks = []core.QuirkID{"numpy.a", "numpy.b"}
			},
			contract.Request{Copy: contract.CopyIfNeeded},
		},
		"published": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4}},
			func(l *contract.Lease) { l.Version, l.Published = math.MaxUint64, time.Unix(1<<33, 999_999_999) },
			contract.Request{},
		},
		"empty": {
			core.LayoutSpec{DType: core.Float64, Shape: []int{4, 0}},
			func(l *contract.Lease) { l.Route, l.Handle = contract.RouteEmpty, nil },
			contract.Request{},
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

type otherFence struct{ contract.Fence }

type otherHandle struct{ contract.Handle }

func TestToProtoRefusesUnknownValues(t *testing.T) {
	t.Parallel()
	layout := mustLayout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	good := contract.Lease{Layout: layout, Fence: contract.Ready{}, Route: contract.RouteMappedFile, Handle: contract.Segment{Size: 1}}
	if _, err := leaseToProto(good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*contract.Lease){
		"route":  func(l *contract.Lease) { l.Route = "" },
		"reason": func(l *contract.Lease) { l.Reason = "no such" },
		"fence":  func(l *contract.Lease) { l.Fence = nil },
		"fence2": func(l *contract.Lease) { l.Fence = otherFence{} },
		"handle": func(l *contract.Lease) { l.Handle = otherHandle{} },
	} {
		l := good
		edit(&l)
		if m, err := leaseToProto(l); err == nil {
			t.Errorf("%s: sent as %v", name, m)
		}
	}
	if m, err := infoToProto(contract.Info{Frameworks: []contract.Framework{{Quirks: []contract.Quirk{{ID: "a.b"}}}}}); err == nil {
		t.Errorf("a quirk without an effect is sent as %v", m)
	}
	if m, err := settingsToProto(contract.Settings{Adapters: []contract.AdapterSettings{{Copy: "no such"}}}); err == nil {
		t.Errorf("an unknown copy policy is sent as %v", m)
	}
}

func TestInfoCrosses(t *testing.T) {
	t.Parallel()
	quirk := contract.Quirk{
		ID: "numpy.q", Framework: "numpy", Since: "1.2", Until: "2.0", Protocol: "dlpack", Summary: "s", Remedy: "r",
		Effect: contract.EffectCorrect, Upstream: "u", Choices: []string{"a", "b"},
	}
	want := contract.Info{
		Program: "camera", Plugin: "all 0.1.0", Interpreter: "CPython 3.11.7 (/usr/bin/python3)", PID: 12, SharedHeap: "on",
		Frameworks: []contract.Framework{{Name: "numpy", Version: "1.9", Quirks: []contract.Quirk{quirk}}, {Name: "torch"}},
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
		"quirk choice":     quirks(&pb.Quirk{Choices: []string{long}, Effect: pb.Effect_EFFECT_STAGE}),
		"nil in the lists": {Frameworks: []*pb.Framework{{Quirks: []*pb.Quirk{nil}}}},
	} {
		if got, err := infoToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestEntriesCross(t *testing.T) {
	t.Parallel()
	want := contract.Entry{
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
	cause := &core.Error{Op: "list", Object: "o", Kind: core.ErrDType, Remedy: "publish a copy", Err: errors.New("object")}
	if message, err = entryToProto(contract.Entry{Name: "o", Err: cause}); err != nil {
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
	want := contract.Settings{Program: "camera", CopyMappedFiles: true, Adapters: []contract.AdapterSettings{
		{Name: "numpy", Copy: contract.CopyNever, DisabledQuirks: []core.QuirkID{"numpy.q"}},
		{Name: "torch", QuirkEffects: map[core.QuirkID]string{"torch.q": "refuse"}},
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
		"program":   {Program: long},
		"adapters":  {Adapters: make([]*pb.AdapterSettings, maxList+1)},
		"adapter":   {Adapters: []*pb.AdapterSettings{{Name: long}}},
		"policy":    {Adapters: []*pb.AdapterSettings{{Copy: 9}}},
		"quirks":    {Adapters: []*pb.AdapterSettings{{DisabledQuirks: make([]string, maxList+1)}}},
		"effect of": {Adapters: []*pb.AdapterSettings{{QuirkEffects: map[string]string{long: "refuse"}}}},
		"effect":    {Adapters: []*pb.AdapterSettings{{QuirkEffects: map[string]string{"torch.q": long}}}},
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
