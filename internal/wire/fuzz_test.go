package wire

import (
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

func seed(f *testing.F, m proto.Message) {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

// FuzzLease feeds arbitrary messages to the host's check of a lease, and holds what passes to what
// the host relies on.
func FuzzLease(f *testing.F) {
	seed(f, valid())
	published := valid()
	published.Version, published.Published = 3, -1
	seed(f, published)
	for _, edit := range hostileLeases() {
		l := valid()
		edit(l)
		if proto.Size(l) < 1<<12 {
			seed(f, l)
		}
	}
	for _, l := range cudaLeases(f) {
		message, err := leaseToProto(l)
		if err != nil {
			f.Fatal(err)
		}
		seed(f, message)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		message := new(pb.Lease)
		if proto.Unmarshal(b, message) != nil {
			return
		}
		for _, req := range []contract.Request{{}, {Writable: true}, {Copy: contract.CopyNever}} {
			l, err := leaseToCore(message, req)
			if err != nil {
				continue
			}
			if _, err := core.NewLayout(l.Layout.Spec()); err != nil {
				t.Fatalf("layout %+v: %v", l.Layout.Spec(), err)
			}
			lo, hi := l.Layout.Span()
			_, host := l.Handle.(contract.Segment)
			ok := l.Handle != nil
			switch {
			case ok != (l.Layout.Len() > 0) || ok == (l.Route == contract.RouteEmpty):
				t.Fatalf("%d elements by route %v with handle %v", l.Layout.Len(), l.Route, l.Handle)
			case ok && (lo < 0 || lo >= hi || int64(hi) > l.Handle.Extent()):
				t.Fatalf("span %d to %d of %+v", lo, hi, l.Handle)
			case ok && host != l.Layout.Device().HostReadable():
				t.Fatalf("a handle of type %T on %v", l.Handle, l.Layout.Device())
			case !host && ok && l.Layout.Device().Kind != core.CUDA:
				t.Fatalf("GPU memory on %v", l.Layout.Device())
			case l.Route == "" || l.Fence == nil || contract.Copied(l.Route) != (l.Reason != ""):
				t.Fatalf("route %v, fence %v, reason %v", l.Route, l.Fence, l.Reason)
			case l.ID == 0 || (l.Version == 0) != l.Published.IsZero():
				t.Fatalf("lease %d, version %d, published at %v", l.ID, l.Version, l.Published)
			case l.Writable != req.Writable || l.Writable && l.Layout.ReadOnly():
				t.Fatalf("writable %v, asked %v, read-only %v", l.Writable, req.Writable, l.Layout.ReadOnly())
			case contract.Copied(l.Route) && (req.Copy == contract.CopyNever || l.Writable):
				t.Fatalf("a copy for %+v", req)
			}
			again, err := leaseToProto(l)
			if err != nil {
				t.Fatalf("%+v cannot be sent again: %v", l, err)
			}
			if _, err := leaseToCore(again, req); err != nil {
				t.Fatalf("%+v is refused the second time: %v", l, err)
			}
		}
	})
}

// FuzzEntry feeds arbitrary messages to the check of a listing's entry, errors included.
func FuzzEntry(f *testing.F) {
	seed(f, &pb.Entry{Name: "x", Layout: valid().GetLayout()})
	seed(f, &pb.Entry{Name: "x", Error: errorToProto(&core.Error{
		Op: "list", Kind: core.ErrPython, Err: &core.PythonError{Type: "ValueError", Message: "m", Traceback: "t"},
	})})
	f.Fuzz(func(t *testing.T, b []byte) {
		message := new(pb.Entry)
		if proto.Unmarshal(b, message) != nil {
			return
		}
		e, err := entryToCore(message)
		switch {
		case err != nil:
		case e.Err == nil:
			if _, err := core.NewLayout(e.Layout.Spec()); err != nil {
				t.Fatalf("layout %+v: %v", e.Layout.Spec(), err)
			}
		default:
			if _, ok := classOf(e.Err); !ok || !utf8.ValidString(e.Err.Error()) {
				t.Fatalf("error %q without a category, or not UTF-8", e.Err)
			}
		}
	})
}

// FuzzError feeds arbitrary messages to the decoder of a call's error, and holds that what is behind an exception is bounded, and crosses
// again as it is.
func FuzzError(f *testing.F) {
	chain := func(p *pb.PythonError) *pb.PythonError {
		return &pb.PythonError{Type: "ValueError", Message: "m", Traceback: "t", Notes: []string{"n", "\u2020"}, Cause: p}
	}
	group := func(p *pb.PythonError) *pb.PythonError {
		return &pb.PythonError{Type: "ExceptionGroup", Context: &pb.PythonError{Type: "KeyError"}, Group: []*pb.PythonError{p, {}}}
	}
	for _, around := range []func(*pb.PythonError) *pb.PythonError{chain, group} {
		for _, n := range []int{0, 1, 5, 100} {
			if python := nested(n, around); proto.Size(python) < 1<<14 {
				seed(f, &pb.ErrorInfo{Kind: pb.ErrorKind_ERROR_KIND_PYTHON, Op: "call", Python: python})
			}
		}
	}
	seed(f, &pb.ErrorInfo{Python: &pb.PythonError{Notes: make([]string, 100), Cause: &pb.PythonError{}, Context: &pb.PythonError{}}})
	f.Fuzz(func(t *testing.T, b []byte) {
		codec := newCallCodec()
		err := codec.Error(b)
		if _, ok := classOf(err); !ok || !utf8.ValidString(err.Error()) {
			t.Fatalf("error %q without a category, or not UTF-8", err)
		}
		e, ok := errors.AsType[*core.PythonError](err)
		if !ok {
			return
		}
		bounded(t, "it", e)
		again := codec.Error(codec.AppendError(nil, err))
		if now, ok := errors.AsType[*core.PythonError](again); !ok || !reflect.DeepEqual(now, e) {
			t.Fatalf("%+v crosses again as %+v", e, now)
		}
	})
}

// FuzzInfo feeds arbitrary messages to the checks of a description and of settings.
func FuzzInfo(f *testing.F) {
	info, err := infoToProto(contract.Info{PID: 1, Frameworks: []contract.Framework{
		{Name: "numpy", Quirks: []contract.Quirk{{ID: "numpy.q", Effect: contract.EffectStage}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	seed(f, info)
	f.Fuzz(func(t *testing.T, b []byte) {
		message, settings := new(pb.Info), new(pb.Settings)
		if proto.Unmarshal(b, message) == nil {
			if i, err := infoToCore(message); err == nil && (i.PID < 0 || i.Leases < 0) {
				t.Fatalf("%+v", i)
			}
		}
		if proto.Unmarshal(b, settings) == nil {
			if s, err := settingsToCore(settings); err == nil {
				if _, err := settingsToProto(s); err != nil {
					t.Fatalf("%+v cannot be sent again: %v", s, err)
				}
			}
		}
	})
}
