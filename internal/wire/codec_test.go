package wire

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// TestCodec: a lease that goes through a slot of the mailbox is the lease that a call would have brought.
func TestCodec(t *testing.T) {
	t.Parallel()
	for name, want := range cudaLeases(t) {
		b, err := codec{}.Append([]byte("before"), &want)
		if err != nil || !bytes.HasPrefix(b, []byte("before")) {
			t.Fatalf("%s: %q, %v", name, b, err)
		}
		b = b[len("before"):]
		if id := (codec{}).ID(b); id != want.ID {
			t.Errorf("%s: ID %d, want %d", name, id, want.ID)
		}
		got, err := codec{}.Lease(b, contract.Request{Writable: want.Writable})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !got.Layout.Equal(want.Layout) {
			t.Errorf("%s: layout %v arrived as %v", name, want.Layout, got.Layout)
		}
		got.Layout, want.Layout = core.Layout{}, core.Layout{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v arrived as %+v", name, want, got)
		}
	}
}

// TestCodecRefuses: nothing of a mailbox is believed that would not be believed of a call.
func TestCodecRefuses(t *testing.T) {
	t.Parallel()
	whole, err := proto.Marshal(valid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (codec{}).Lease(whole, contract.Request{}); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if l, err := (codec{}).Lease(whole[:n], contract.Request{}); err == nil {
			// Fields that come last may be missing, if nothing depends on them.
			if l.ID == 0 || l.Handle == nil || l.Fence == nil || l.Route == "" {
				t.Errorf("%d of %d bytes make %+v", n, len(whole), l)
			}
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "zeros": make([]byte, 64), "ones": bytes.Repeat([]byte{0xFF}, 64), "text": []byte("lease me"),
	} {
		if l, err := (codec{}).Lease(b, contract.Request{}); err == nil {
			t.Errorf("%s: read as %+v", name, l)
		}
		if id := (codec{}).ID(b); id != 0 {
			t.Errorf("%s: has the ID %d", name, id)
		}
	}
	for name, edit := range hostileLeases() {
		l := valid()
		edit(l)
		b, err := proto.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (codec{}).Lease(b, contract.Request{}); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
	before := []byte("before")
	if b, err := (codec{}).Append(before, &contract.Lease{Route: "by post"}); err == nil || !bytes.Equal(b, before) {
		t.Errorf("a lease of no route became %q, %v", b, err)
	}
}

func TestHandoffSettingsCross(t *testing.T) {
	t.Parallel()
	for _, want := range []handoff.Settings{{}, {Slots: 1}, {Slots: handoff.MaxSlots, Spin: maxSpin}, {Slots: 8, Spin: 50 * time.Microsecond}} {
		message := handoffToProto(want)
		if (message == nil) != (want == handoff.Settings{}) {
			t.Errorf("%+v is sent as %v", want, message)
		}
		if message != nil {
			message = sent(t, message)
		}
		if got, err := handoffToCore(message); err != nil || got != want {
			t.Errorf("%+v arrived as %+v, %v", want, got, err)
		}
	}
	for name, m := range map[string]*pb.HandoffSettings{
		"no slots":      {},
		"many slots":    {Slots: handoff.MaxSlots + 1},
		"all slots":     {Slots: math.MaxUint32},
		"negative spin": {Slots: 1, Spin: -1},
		"long spin":     {Slots: 1, Spin: int64(maxSpin) + 1},
		"endless spin":  {Slots: 1, Spin: math.MaxInt64},
	} {
		if got, err := handoffToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
	memory := handoff.Memory{Segment: math.MaxUint64, Size: 1 << 20, Slots: 8, Offers: true}
	if got := memoryToCore(sent(t, memoryToProto(memory))); got != memory {
		t.Errorf("%+v arrived as %+v", memory, got)
	}
	if got := memoryToCore(&pb.Handoff{Slots: math.MaxUint32}); got.Slots != handoff.MaxSlots+1 {
		t.Errorf("a mailbox of too many slots has %d, which who maps it must refuse", got.Slots)
	}
}

func TestRequestsCross(t *testing.T) {
	t.Parallel()
	for _, want := range []contract.Request{
		{},
		{Writable: true},
		{Copy: contract.CopyNever, NoWait: true},
		{Copy: contract.CopyIfNeeded, NoCode: true},
	} {
		policy, err := enumToProto(copyPolicies(), want.Copy)
		if err != nil {
			t.Fatal(err)
		}
		m := sent(t, &pb.LeaseRequest{Name: "x", Writable: want.Writable, Copy: policy, NoWait: want.NoWait, NoCode: want.NoCode})
		if got, err := requestToCore(m); err != nil || got != want {
			t.Errorf("%+v arrived as %+v, %v", want, got, err)
		}
	}
	for name, m := range map[string]*pb.LeaseRequest{
		"policy": {Copy: 77},
		"name":   {Name: strings.Repeat("x", maxText+1)},
	} {
		if got, err := requestToCore(m); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

// nested makes an exception with n behind it.
func nested(n int, around func(*pb.PythonError) *pb.PythonError) *pb.PythonError {
	var p *pb.PythonError
	for range n {
		p = around(p)
	}
	return p
}

// bounded holds that an exception is no larger than one that arrives may be.
func bounded(t *testing.T, name string, e *core.PythonError) {
	t.Helper()
	exceptions, bytes := 0, 0
	for each := range e.All() {
		exceptions++
		texts := append([]string{each.Type, each.Message, each.Traceback}, each.Notes...)
		for _, text := range texts {
			if bytes += len(text); !utf8.ValidString(text) {
				t.Errorf("%s: no text: %.80q", name, text)
			}
		}
		if len(each.Notes) > maxNotes {
			t.Errorf("%s: %d notes", name, len(each.Notes))
		}
	}
	if exceptions > maxExceptions || bytes > maxTold+4*leastTold {
		t.Errorf("%s: %d exceptions of %d bytes", name, exceptions, bytes)
	}
}

// TestHostileErrors: whatever the other side says that went wrong, the host has an error of one category, of a length that
// can be read.
func TestHostileErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("€", maxLongText)
	kinds := make([]pb.ErrorKind, 1<<16)
	for i := range kinds {
		kinds[i] = pb.ErrorKind(i)
	}
	for name, info := range map[string]*pb.ErrorInfo{
		"exceptions behind each other": {Python: nested(5000, func(p *pb.PythonError) *pb.PythonError { return &pb.PythonError{Type: "E", Cause: p} })},
		"groups in groups":             {Python: nested(5000, func(p *pb.PythonError) *pb.PythonError { return &pb.PythonError{Group: []*pb.PythonError{p, p, nil}} })},
		"long exceptions behind": {Python: nested(50, func(p *pb.PythonError) *pb.PythonError {
			return &pb.PythonError{Type: long, Message: long, Traceback: long, Notes: slices.Repeat([]string{long}, 100), Cause: p, Context: p}
		})},
		"many parts and notes": {Python: &pb.PythonError{Group: slices.Repeat([]*pb.PythonError{{}}, 1<<16), Notes: make([]string, 1<<16)}},
		"nil":                  nil,
		"nothing":              {},
		"a later category":     {Kind: 4711, Cause: "later"},
		"a negative one":       {Kind: -1},
		"many categories":      {Kind: pb.ErrorKind_ERROR_KIND_DTYPE, CauseKinds: kinds},
		"a later reason":       {Kind: pb.ErrorKind_ERROR_KIND_NOT_SHARED, Reason: 99},
		"long texts":           {Op: long, Program: long, Array: long, Adapter: long, Quirk: long, Remedy: long, Cause: long},
		"no text":              {Op: "\xff\xfe", Cause: "\x00\xff"},
		"a long exception":     {Kind: pb.ErrorKind_ERROR_KIND_PYTHON, Python: &pb.PythonError{Type: long, Message: long, Traceback: long}},
		"an empty one":         {Python: &pb.PythonError{}},
		"a category of its own cause": {
			Kind: pb.ErrorKind_ERROR_KIND_CLOSED, CauseKinds: []pb.ErrorKind{pb.ErrorKind_ERROR_KIND_CLOSED, 0, -5},
		},
	} {
		e := errorToCore(info)
		if c, ok := classOf(e.Kind); !ok || !e.Remote {
			t.Errorf("%s: category %v, remote %v", name, c.kind, e.Remote)
		}
		if n := len(e.Error()); n > 8*(maxLongText+maxText) {
			t.Errorf("%s: %d bytes", name, n)
		}
		if strings.ToValidUTF8(e.Error(), "") != e.Error() {
			t.Errorf("%s: no text: %.80q", name, e.Error())
		}
		if p, ok := errors.AsType[*core.PythonError](e); ok {
			bounded(t, name, p)
		}
		again := errorToProto(e) // as a host does that serves others
		if got := errorToCore(again); !errors.Is(got, e.Kind) || got.Op != e.Op || got.Object != e.Object || got.Remedy != e.Remedy {
			t.Errorf("%s: %v crosses again as %v", name, e, got)
		}
	}
}

// TestErrorsOfSeveralCategories: an error counts as the first, and errors.Is finds the others behind it.
func TestErrorsOfSeveralCategories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		kind error
		is   []error
	}{
		"joined":               {errors.Join(core.ErrDType, core.ErrClosed), core.ErrClosed, []error{core.ErrDType}},
		"a context's, wrapped": {&core.Error{Kind: core.ErrUnavailable, Err: context.Canceled}, core.ErrUnavailable, []error{context.Canceled}},
		"a context's behind": {
			errors.Join(context.DeadlineExceeded, &core.Error{Kind: core.ErrNotFound}), core.ErrNotFound,
			[]error{context.DeadlineExceeded},
		},
		"a category in a cause": {
			&core.Error{Kind: core.ErrProtocol, Err: &core.Error{Kind: core.ErrPointer, Err: core.ErrLayout}},
			core.ErrProtocol,
			[]error{core.ErrPointer, core.ErrLayout},
		},
	} {
		got := errorToCore(sent(t, errorToProto(c.err)))
		if !errors.Is(got.Kind, c.kind) {
			t.Errorf("%s: category %v, want %v", name, got.Kind, c.kind)
		}
		for _, other := range c.is {
			if !errors.Is(got, other) {
				t.Errorf("%s: %v is not %v any more", name, got, other)
			}
		}
		if errors.Is(got, core.ErrConfig) {
			t.Errorf("%s: %v is of a category that nobody named", name, got)
		}
	}
	if toStatus(nil) != nil {
		t.Error("no error is one")
	}
}

// TestGrants: a token stands for one lease, and for none any more when the lease is gone, by whichever name it goes.
func TestGrants(t *testing.T) {
	t.Parallel()
	var table grantTable
	if !table.Add(0, 1) || !table.Add(0, 2) {
		t.Error("token 0 stands for no call, so many have it")
	}
	if !table.Add(7, 3) || table.Add(7, 4) {
		t.Error("a token was given twice")
	}
	if !table.Add(8, 5) || !table.Add(9, 6) {
		t.Error("other tokens are refused")
	}
	table.Remove(3)
	table.Remove(3)
	table.Remove(99)
	if !table.Add(7, 4) {
		t.Error("the token of a lease that is gone is taken")
	}
	if got := table.Take([]uint64{8, 8, 0, 1234, 7}); !reflect.DeepEqual(got, []contract.LeaseID{5, 4}) {
		t.Errorf("took %v", got)
	}
	if got := table.Take([]uint64{7, 8}); got != nil {
		t.Errorf("took %v again", got)
	}
	if got := table.Take([]uint64{9}); !reflect.DeepEqual(got, []contract.LeaseID{6}) {
		t.Errorf("took %v", got)
	}
	if len(table.ids)+len(table.tokens) > 0 {
		t.Errorf("%v and %v are left", table.ids, table.tokens)
	}
}

// TestClip: text for people is cut where runes begin, keeps its ends, and is never longer than it may be.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "é", "€", "😀", "a😀", "\xff"} {
		for limit := 16; limit < 40; limit++ {
			for count := range 40 {
				s := "<" + strings.Repeat(unit, count) + ">"
				got := clip(s, limit)
				whole := strings.ToValidUTF8(s, replacement)
				if len(got) > max(limit, len(whole)) || len(whole) <= limit && got != whole || len(whole) > limit && len(got) > limit {
					t.Fatalf("%q at %d became %q of %d bytes", s, limit, got, len(got))
				}
				if !strings.HasPrefix(got, "<") || !strings.HasSuffix(got, ">") || strings.ToValidUTF8(got, "") != got {
					t.Fatalf("%q at %d became %q", s, limit, got)
				}
			}
		}
	}
}
