package handoff

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// write writes a request as a client does.
func write(r *request) []byte {
	b := head(nil, r.op, r.req, r.look, len(r.names)+len(r.ids))
	for _, name := range r.names {
		b = appendName(b, name)
	}
	return appendIDs(b, r.ids)
}

// requests are examples of all kinds.
func requests() map[string]*request {
	return map[string]*request{
		"lease": {op: opLease, names: []string{"frame", `d["k"]`}},
		"lease-for": {
			op: opLease, req: contract.Request{Writable: true, NoWait: true, Copy: contract.CopyNever}, names: []string{"x"},
		},
		"refresh": {op: opRefresh, ids: []contract.LeaseID{1, 0x0102030405060708}},
		"look":    {op: opRefresh, look: true, ids: []contract.LeaseID{1<<64 - 1}},
		"release": {op: opRelease, ids: []contract.LeaseID{1, 2, 3}},
	}
}

func TestRequestsAreFrozen(t *testing.T) {
	t.Parallel()
	for name, want := range requests() {
		b := write(want)
		frozen(t, "request-"+name, b)
		got := request{names: []string{"before"}, ids: []contract.LeaseID{9}}
		if err := got.parse(b); err != nil || !alike(&got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func alike(a, b *request) bool {
	return a.op == b.op && a.req == b.req && a.look == b.look && slices.Equal(a.names, b.names) && slices.Equal(a.ids, b.ids)
}

// results are of all kinds.
func results() []Look {
	return []Look{
		{Status: Unchanged},
		{Status: Changed, Lease: &contract.Lease{ID: 5, Framework: "numpy"}},
		{},
		{Status: Fenced, Fence: contract.CUDAWord{Page: 9, Size: 4096, Offset: 8, Value: 77}},
		{Status: Changed, Lease: &contract.Lease{ID: 1<<64 - 1, Framework: "torch"}},
	}
}

// answerOf writes results as a server does.
func answerOf(t *testing.T, results []Look) []byte {
	t.Helper()
	s := &Server{codec: plain{}, producer: &fake{}, release: new(fake).Release, ctx: t.Context(), results: results}
	return s.write(nil)
}

// readAll reads an answer as a client does, whose stray leases are those that come back.
func readAll(answer []byte, n int, only bool) (looks []Look, stray []contract.LeaseID, err error) {
	c := &Client{codec: plain{}, stray: func(id contract.LeaseID) { stray = append(stray, id) }}
	looks = make([]Look, n)
	err = c.read(answer, looks, only, func(int) contract.Request { return contract.Request{} })
	return looks, stray, err
}

// TestAnswersAreFrozen: plugins and hosts of other releases read the same bytes, on either side. A difference
// is another protocol: see docs/PROTOCOL.md.
func TestAnswersAreFrozen(t *testing.T) {
	t.Parallel()
	want := results()
	b := answerOf(t, want)
	frozen(t, "answer", b)
	got, stray, err := readAll(b, len(want), false)
	if err != nil || len(stray) != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v; given back: %d", got, err, want, stray)
	}
	if ids := granted(b, plain{}); !slices.Equal(ids, []contract.LeaseID{5, 1<<64 - 1}) {
		t.Errorf("an answer that is not wanted has the leases %d", ids)
	}
	s := &Server{producer: &fake{}, release: new(fake).Release, ctx: t.Context()}
	frozen(t, "answer-ask", s.handle([]byte("nonsense"), nil))
	frozen(t, "answer-released", s.handle(write(requests()["release"]), nil))
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

// TestSizes: what docs/PROTOCOL.md says has room.
func TestSizes(t *testing.T) {
	t.Parallel()
	if MaxRequest != 16188 || MaxAnswer != 49148 || MaxIDs != 2022 || MaxName != 1024 {
		t.Errorf("requests of %d bytes or %d leases, answers of %d, names of %d", MaxRequest, MaxIDs, MaxAnswer, MaxName)
	}
	ids := make([]contract.LeaseID, MaxIDs)
	if n := len(write(&request{op: opRefresh, ids: ids})); n > MaxRequest || n+8 <= MaxRequest {
		t.Errorf("a request about %d leases has %d bytes", MaxIDs, n)
	}
}

// TestHostileRequests: each is refused.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of   string
		edit func(b []byte) []byte
	}{
		"nothing":            {"lease", func([]byte) []byte { return nil }},
		"an operation":       {"lease", set(0, 4)},
		"no operation":       {"lease", set(0, 0)},
		"a flag":             {"lease", set(1, 8)},
		"a copy policy":      {"lease", set(2, 3)},
		"what is zero":       {"lease", set(3, 1)},
		"no names":           {"lease", set(4, 0)},
		"fewer names":        {"lease", set(4, 1)},
		"more names":         {"lease", set(4, 3)},
		"very many names":    {"lease", set(7, 0xff)},
		"an empty name":      {"lease", set(8, 0)},
		"a name beyond":      {"lease", set(8, 200)},
		"a long name":        {"lease", set(9, 5)},
		"a byte too many":    {"lease", func(b []byte) []byte { return append(b, 0) }},
		"no leases":          {"refresh", set(4, 0)},
		"fewer leases":       {"refresh", set(4, 1)},
		"more leases":        {"release", set(4, 4)},
		"very many leases":   {"release", set(7, 0xff)},
		"a part of a lease":  {"release", func(b []byte) []byte { return b[:len(b)-1] }},
		"a lease and a byte": {"release", func(b []byte) []byte { return append(b, 0) }},
	} {
		b := tt.edit(write(requests()[tt.of]))
		if err := new(request).parse(b); err == nil {
			t.Errorf("%s: taken for a request", name)
		}
	}
	b := write(requests()["lease"])
	for n := range b {
		if err := new(request).parse(b[:n]); err == nil {
			t.Errorf("%d bytes of %d: taken for a request", n, len(b))
		}
	}
}

func set(at int, value byte) func(b []byte) []byte {
	return func(b []byte) []byte {
		b[at] = value
		return b
	}
}

// TestHostileAnswers: each is refused, and the leases in it that can be told are given back.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	n := len(results())
	good := answerOf(t, results())
	statuses, firstLease := answerHead, answerHead+n
	fence := firstLease + 4 + 8 + len("numpy")
	for name, tt := range map[string]struct {
		edit  func(b []byte) []byte
		stray []contract.LeaseID
	}{
		"nothing":              {func([]byte) []byte { return nil }, nil},
		"a kind":               {set(0, 3), nil},
		"what is zero":         {set(2, 1), nil},
		"fewer results":        {set(4, byte(n-1)), nil},
		"more results":         {set(4, byte(n+1)), nil},
		"very many results":    {set(7, 0xff), nil},
		"a status":             {set(statuses, 4), []contract.LeaseID{5, 1<<64 - 1}},
		"a status at the end":  {set(statuses+4, 9), []contract.LeaseID{5}},
		"a lease's length":     {set(firstLease, 200), nil},
		"a huge lease":         {set(firstLease+3, 0xff), nil},
		"a lease without ID":   {func(b []byte) []byte { clear(b[firstLease+4:][:8]); return b }, []contract.LeaseID{1<<64 - 1}},
		"an empty lease":       {set(firstLease, 0), nil},
		"no end":               {func(b []byte) []byte { return b[:len(b)-1] }, []contract.LeaseID{5}},
		"a fence's alignment":  {set(fence+16, 2), []contract.LeaseID{5}},
		"a fence past its end": {func(b []byte) []byte { binary.LittleEndian.PutUint64(b[fence+16:], 4096); return b }, []contract.LeaseID{5}},
		"a fence before it":    {set(fence+23, 0x80), []contract.LeaseID{5}},
		"a fence of no page":   {func(b []byte) []byte { clear(b[fence+8:][:8]); return b }, []contract.LeaseID{5}},
	} {
		got, stray, err := readAll(tt.edit(slices.Clone(good)), n, false)
		if err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
		if !slices.Equal(stray, tt.stray) {
			t.Errorf("%s: given back are the leases %d, want %d", name, stray, tt.stray)
		}
		if !reflect.DeepEqual(got, make([]Look, n)) {
			t.Errorf("%s: after an error there is %+v", name, got)
		}
	}
}

// FuzzRequest: whatever the host writes is refused, or a request that is the same when it is written again.
func FuzzRequest(f *testing.F) {
	for _, r := range requests() {
		f.Add(write(r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		if r.parse(b) != nil {
			return
		}
		if again := write(&r); string(again) != string(b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}

// FuzzAnswer: whatever the producer writes is refused, or read whole, and no lease is both taken and given back.
func FuzzAnswer(f *testing.F) {
	s := &Server{codec: plain{}, producer: &fake{}, release: new(fake).Release, ctx: f.Context(), results: results()}
	f.Add(s.write(nil), len(results()), false)
	s.results = []Look{{Status: Changed}, {Status: Unchanged}}
	f.Add(s.write(nil), 2, true)
	f.Add([]byte{answerAsk, 0, 0, 0, 0, 0, 0, 0}, 1, false)
	f.Fuzz(func(t *testing.T, b []byte, n int, only bool) {
		if n < 0 || n > MaxIDs {
			return
		}
		looks, stray, err := readAll(b, n, only)
		if err == nil && len(stray) != 0 || only && len(stray) != 0 {
			t.Errorf("given back: %d", stray)
		}
		for _, l := range looks {
			if (err != nil || only) && l.lease().ID != 0 || err == nil && l.Status == Changed && !only && l.lease().ID == 0 {
				t.Errorf("%+v, %v", l, err)
			}
		}
	})
}
