package handoff

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
)

// preparer is a producer that prepares names, and writes down what it is asked for.
type preparer struct {
	fake
	changed atomic.Bool // what was granted last is not what would be granted now
	fence   core.Fence  // that a further lease has for its own

	rested atomic.Pointer[string] // the name that was told to rest last

	notes sync.Mutex
	calls []string
}

func (p *preparer) note(call string) {
	p.notes.Lock()
	defer p.notes.Unlock()
	p.calls = append(p.calls, call)
}

// took gives what was asked for since the last time.
func (p *preparer) took() []string {
	p.notes.Lock()
	defer p.notes.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

func (p *preparer) Release(ctx context.Context, ids ...core.LeaseID) error {
	p.note("release")
	return p.fake.Release(ctx, ids...)
}

func (p *preparer) Prepare(name string) Prepared { return &preparedName{p, name} }

type preparedName struct {
	*preparer
	name string
}

func (n *preparedName) Lease(ctx context.Context, req core.Request) (core.Lease, error) {
	n.note("lease")
	return n.fake.Lease(ctx, n.name, req)
}

func (n *preparedName) Again() (core.LeaseID, core.Fence, bool) {
	n.note("again")
	if n.changed.Load() {
		return 0, nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == 0 || !n.standing[n.last] {
		return 0, nil, false
	}
	n.last++
	n.standing[n.last] = true
	return n.last, n.fence, true
}

// Rest is not noted: it is called when nothing is asked for.
func (n *preparedName) Rest() bool {
	n.rested.Store(&n.name)
	return false
}

// pending hands out releases that a test gives.
type pending struct{ ids []core.LeaseID }

func (p *pending) Take(buf []core.LeaseID) ([]core.LeaseID, int) {
	buf = append(buf, p.ids...)
	p.ids = nil
	return buf, 0
}

func (*pending) Taken([]core.LeaseID, int, bool) {}

// TestAgain: what is asked for again is granted again before what comes along is given back, and looked at
// anew after that.
func TestAgain(t *testing.T) {
	t.Parallel()
	lease := core.Lease{
		Layout: layoutOf(core.LayoutSpec{DType: core.DTypeOf[float32](), Shape: []int{3}}), Fence: core.Ready{},
		Framework: "numpy", Route: core.RouteSharedHeap, Handle: core.Segment{ID: 1, Size: 4096},
	}
	p := &preparer{fake: fake{lease: granting(lease)}}
	client := connect(t, p, Settings{Lanes: 1, Spin: time.Millisecond})
	source, releases := client.Source("x"), &pending{}
	ask := func(req core.Request, want ...string) Grant {
		t.Helper()
		l, err := client.Lease(t.Context(), source, req, releases)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.took(); !slices.Equal(got, want) {
			t.Errorf("asked for %v, want %v", got, want)
		}
		if same(l.Whole(), lease) {
			t.Error("a lease without an ID of its own")
		}
		whole := l.Whole()
		if whole.ID = lease.ID; !same(whole, lease) {
			t.Errorf("got %+v, want %+v", whole, lease)
		}
		return l
	}
	first := ask(core.Request{}, "lease")
	releases.ids = []core.LeaseID{first.ID}
	second := ask(core.Request{}, "again", "release")
	if first.ID == second.ID {
		t.Error("two leases have one ID")
	}
	releases.ids = []core.LeaseID{second.ID}
	third := ask(core.Request{Copy: core.CopyNever}, "release", "lease") // another request
	ask(core.Request{Copy: core.CopyNever}, "again")
	p.changed.Store(true)
	releases.ids = []core.LeaseID{third.ID}
	ask(core.Request{Copy: core.CopyNever}, "again", "release", "lease")
	p.changed.Store(false)
	p.mu.Lock()
	p.lease = func(context.Context, string, core.Request) (core.Lease, error) {
		return core.Lease{}, errors.New("gone")
	}
	p.mu.Unlock()
	if _, err := client.Lease(t.Context(), source, core.Request{}, releases); !errors.Is(err, ErrAsk) {
		t.Errorf("%v, want ErrAsk", err)
	}
	p.took()
	if _, err := client.Lease(t.Context(), source, core.Request{}, releases); !errors.Is(err, ErrAsk) || slices.Contains(p.took(), "again") {
		t.Errorf("%v, or the answer to a request that failed was asked for again", err)
	}
}

// TestDescriptionsTravelOnce: a host that has a description is not told it with a further lease, but is for
// another request and after a change. A description that is the same keeps its number.
func TestDescriptionsTravelOnce(t *testing.T) {
	t.Parallel()
	lease := examples()["segment"]
	p := &preparer{fake: fake{lease: granting(lease)}}
	s := &Server{producer: p, sources: newSources(p), ctx: t.Context()}
	answer := make([]byte, ring.MaxAnswer)
	ask := func(name string, req core.Request, known uint32) (kind byte, number uint32) {
		t.Helper()
		n := s.handle(appendRequest(nil, &request{op: opLease, req: req, name: []byte(name), known: known}), answer)
		kind, err := kindOf(answer[:n])
		if err != nil || (kind == answerAgain) != (n == answerDescription) {
			t.Errorf("%d bytes of kind %d, %v", n, kind, err)
		}
		return kind, numberOf(answer)
	}
	expect := func(what string, kind, wantKind byte, number, want uint32) {
		t.Helper()
		if kind != wantKind || number != want {
			t.Errorf("%s: kind %d, description %d; want %d, %d", what, kind, number, wantKind, want)
		}
	}
	other := core.Request{Copy: core.CopyNever}
	_, first := ask("x", core.Request{}, 0)
	kind, number := ask("x", core.Request{}, first)
	expect("what is known", kind, answerAgain, number, first)
	kind, number = ask("x", core.Request{}, 0)
	expect("what is not known", kind, answerLease, number, first)
	_, second := ask("y", core.Request{}, first)
	if second == first || first == 0 {
		t.Errorf("two names have the descriptions %d and %d", first, second)
	}
	p.changed.Store(true)
	kind, number = ask("x", core.Request{}, first)
	expect("what was looked at anew and is the same", kind, answerLease, number, first)
	lease.Framework = "torch"
	p.mu.Lock()
	p.lease = granting(lease)
	p.mu.Unlock()
	_, changed := ask("x", core.Request{}, first)
	p.changed.Store(false)
	kind, number = ask("x", core.Request{}, first)
	expect("what was known before a change", kind, answerLease, number, changed)
	if _, elsewhere := ask("x", other, changed); changed == first || elsewhere == changed {
		t.Errorf("descriptions %d, %d after a change, %d for another request", first, changed, elsewhere)
	}
}

// TestAgainAfter: what is granted again may have a fence of its own, and the next one another, or none.
func TestAgainAfter(t *testing.T) {
	t.Parallel()
	lease := examples()["ipc"]
	p := &preparer{fake: fake{lease: granting(lease)}}
	client := connect(t, p, Settings{Lanes: 1, Spin: time.Millisecond})
	source, releases := client.Source("x"), &pending{}
	word := core.CUDAWord{Page: 9, Size: 4096, Offset: 64, Value: 1}
	last := lease.Fence
	for i, fence := range []core.Fence{nil, core.Ready{}, word, nil, core.CUDAWord{Page: 9, Size: 4096, Value: 2}, core.Ready{}} {
		p.mu.Lock()
		p.fence = fence
		p.mu.Unlock()
		got, err := client.Lease(t.Context(), source, core.Request{}, releases)
		if err != nil {
			t.Fatal(err)
		}
		want := fence
		if want == nil {
			want = last // that of the last call of Lease
		}
		if got.Fence != want {
			t.Errorf("%d: fence %+v, want %+v", i, got.Fence, want)
		}
		if whole := got.Whole(); whole.Handle != lease.Handle {
			t.Errorf("%d: handle %+v, want %+v", i, whole.Handle, lease.Handle)
		}
	}
}

// TestNamesOfServer: names with and without a number are prepared once, the former for each number.
func TestNamesOfServer(t *testing.T) {
	t.Parallel()
	var made []string
	s := newSources(&preparer{})
	s.prepare = func(name string) Prepared { made = append(made, name); return plain{} }
	x, y := []byte("x"), []byte("y")
	first := s.find(&request{source: 3, name: x})
	if first == nil || s.find(&request{source: 3}) != first || s.find(&request{source: 3, name: x}) != first {
		t.Error("a name and its number are not one source")
	}
	if s.find(&request{source: 3, name: y}) == first || s.find(&request{source: 3}).name != "y" {
		t.Error("a number does not mean the last name that it was said with")
	}
	if s.find(&request{source: 2}) != nil || s.find(&request{source: maxSources}) != nil || s.find(&request{}) != nil {
		t.Error("a source without a name")
	}
	if named := s.find(&request{name: x}); named == nil || s.find(&request{name: x, source: maxSources}) != named {
		t.Error("a name without a number is not one source")
	}
	if want := []string{"x", "y", "x"}; !slices.Equal(made, want) {
		t.Errorf("prepared %v, want %v", made, want)
	}
	for i := range 2 * maxNamed {
		s.find(&request{name: []byte{byte(i), byte(i >> 8)}})
	}
	if len(s.named) != maxNamed {
		t.Errorf("%d names are kept, want %d", len(s.named), maxNamed)
	}
}

// TestRest: when nothing is asked for, and after each request, the name that was asked for last is told.
func TestRest(t *testing.T) {
	t.Parallel()
	p := &preparer{fake: fake{lease: granting(core.Lease{
		Layout: layoutOf(core.LayoutSpec{DType: core.Uint8, Shape: []int{1}}), Fence: core.Ready{},
		Framework: "numpy", Route: core.RouteSharedHeap, Handle: core.Segment{ID: 1, Size: 4096},
	})}}
	client := connect(t, p, Settings{Lanes: 1})
	if p.rested.Load() != nil {
		t.Error("a name was told to rest that nobody has asked for")
	}
	for _, name := range []string{"x", "y", "x"} {
		if _, err := client.Lease(t.Context(), client.Source(name), core.Request{}, &pending{}); err != nil {
			t.Fatal(err)
		}
		p.rested.Store(nil)
		if err := client.Release(t.Context(), 99); err != nil {
			t.Fatal(err)
		}
		for p.rested.Load() == nil {
			time.Sleep(time.Millisecond)
		}
		if got := *p.rested.Load(); got != name {
			t.Errorf("%s was told to rest, want %s", got, name)
		}
	}
}
