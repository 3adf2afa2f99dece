package handoff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// TestLeases: each name has its own result, whatever the others have, and the request is that of the host.
func TestLeases(t *testing.T) {
	t.Parallel()
	p := &fake{lease: func(_ context.Context, name string) Look {
		switch name {
		case "missing":
			return Look{}
		case "long":
			return Look{Status: Changed, Lease: &contract.Lease{Framework: strings.Repeat("x", MaxAnswer)}}
		default:
			return Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
		}
	}}
	c := connect(t, p, Settings{Slots: 2})
	names := []string{"a", "missing", "b", unsayable, "long", "model.weight", `d["k"]`, strings.Repeat("x", MaxName)}
	req := contract.Request{Writable: true, NoWait: true, Copy: contract.CopyNever}
	results := make([]Look, len(names))
	if err := c.Leases(t.Context(), names, req, results); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		want := Look{Status: Changed, Lease: &contract.Lease{Framework: name, Writable: true}}
		if name == "missing" || name == unsayable || name == "long" {
			want = Look{}
		}
		got := results[i]
		if got.lease().ID != 0 {
			got.Lease.ID = 0
		} else if want.Status == Changed {
			t.Errorf("%s: a lease without a number", name)
		}
		if got.Status != want.Status || got.lease().Framework != want.lease().Framework || got.lease().Writable != want.lease().Writable {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if calls := p.took(); len(calls) != 1 || !slices.Equal(calls[0].names, names) || calls[0].req != req {
		t.Errorf("the producer was asked for %+v", calls)
	}
	if n := p.leases(); n != len(names)-3 {
		t.Errorf("%d leases stand, want those that the host has got", n)
	}
}

// TestRefresh: each lease has its own result.
func TestRefresh(t *testing.T) {
	t.Parallel()
	word := contract.CUDAWord{Page: 9, Size: 4096, Offset: 8, Value: 1<<32 - 1}
	p := &fake{refresh: func(id contract.LeaseID, only bool) Look {
		switch {
		case id == 1:
			return Look{Status: Unchanged}
		case id == 2 && only:
			return Look{Status: Changed}
		case id == 2:
			return Look{Status: Changed, Lease: &contract.Lease{Framework: "other"}}
		case id == 3:
			return Look{Status: Fenced, Fence: word}
		default:
			return Look{}
		}
	}}
	c := connect(t, p, Settings{Slots: 2})
	ids := []contract.LeaseID{2, 3, 1, 1 << 63, 3, 2}
	for _, only := range []bool{false, true} {
		reqs := make([]contract.Request, len(ids))
		reqs[5].Writable = true
		results := make([]Look, len(ids))
		if err := c.Refresh(t.Context(), ids, reqs, only, false, results); err != nil {
			t.Fatal(err)
		}
		for i, status := range []Status{Changed, Fenced, Unchanged, Ask, Fenced, Changed} {
			got := results[i]
			if got.Status != status || (got.Status == Fenced) != (got.Fence == word) ||
				(got.lease().Framework == "other") != (status == Changed && !only) {
				t.Errorf("lease %d, only a look: %v: %+v, want status %d", ids[i], only, got, status)
			}
		}
		if results[0].lease().Writable || results[5].lease().Writable == only {
			t.Error("a lease was not read for what was asked for before")
		}
		if calls := p.took(); len(calls) != 1 || !slices.Equal(calls[0].ids, ids) || calls[0].only != only {
			t.Errorf("the producer was asked for %+v", calls)
		}
		if want := map[bool]int{false: 2, true: 2}[only]; p.leases() != want {
			t.Errorf("%d leases stand, want %d", p.leases(), want)
		}
	}
}

// TestWhatIsForGRPC: what does not fit into a request, or is none, takes no lease.
func TestWhatIsForGRPC(t *testing.T) {
	t.Parallel()
	p := &fake{}
	c := connect(t, p, Settings{Slots: 2})
	wide := make([]string, 64)
	for i := range wide {
		wide[i] = strings.Repeat("x", MaxName)
	}
	for what, names := range map[string][]string{
		"a long name": {"a", strings.Repeat("x", MaxName+1)}, "no name": {"a", ""}, "many long names": wide,
		"a name whose length has no room": {strings.Repeat("x", 1<<16+1)},
	} {
		if _, err := leaseAll(t, c, names...); !errors.Is(err, ErrAsk) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := p.leases(); n != 0 {
		t.Errorf("%d leases stand", n)
	}
	if _, err := leaseAll(t, c, "a"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := c.Leases(t.Context(), nil, contract.Request{}, nil); err != nil {
		t.Errorf("no names at all: %v", err)
	}
	if _, err := refreshAll(t, c, false); err != nil {
		t.Errorf("no leases at all: %v", err)
	}
}

// TestProducersAreHurried: a producer is told in time to leave a name to gRPC, since others wait.
func TestProducersAreHurried(t *testing.T) {
	t.Parallel()
	p := &fake{lease: func(ctx context.Context, _ string) Look {
		<-ctx.Done()
		return Look{}
	}}
	c := connect(t, p, Settings{Slots: 1})
	if results, err := leaseAll(t, c, "x"); err != nil || results[0].Status != Ask {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestManyAtOnce: more than one request can hold is asked for in several, and in order.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := &fake{}
	c := connect(t, p, Settings{Slots: 2})
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprint("name", i))
	}
	results, err := leaseAll(t, c, names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Status != Changed || r.lease().Framework != names[i] {
			t.Errorf("%s: %+v", names[i], r)
		}
	}
	for _, call := range p.took() {
		if n := len(call.names); n > 64 {
			t.Errorf("%d names in one request", n)
		}
	}
	var ids []contract.LeaseID
	for i := range 2*MaxIDs + 3 {
		ids = append(ids, contract.LeaseID(i+1))
	}
	p.finds(func(id contract.LeaseID, _ bool) Look {
		return Look{Status: Fenced, Fence: contract.CUDAWord{Page: contract.SegmentID(id), Size: 4, Value: uint32(id)}}
	})
	looks, err := refreshAll(t, c, false, ids...)
	if err != nil {
		t.Fatal(err)
	}
	fenced := 0
	for i, l := range looks {
		if l.Status == Fenced {
			fenced++
		} else if l.Status != Ask {
			t.Errorf("lease %d: %+v", ids[i], l)
		}
		if l.Status == Fenced && l.Fence.Value != uint32(ids[i]) {
			t.Errorf("lease %d has the fence of lease %d", ids[i], l.Fence.Value)
		}
	}
	if fenced < 1000 { // an answer has no room for all
		t.Errorf("%d of %d have a fence", fenced, len(ids))
	}
	if calls := p.took(); len(calls) != 3 || len(calls[0].ids) != MaxIDs || len(calls[2].ids) != 3 {
		t.Errorf("%d requests", len(calls))
	}
	if err := c.Release(t.Context(), ids...); err != nil || p.leases() != 0 {
		t.Errorf("Release = %v; %d leases stand", err, p.leases())
	}
	if err := c.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLeasesWithoutRoom: what an answer has no room for is given back by the server, and the rest stands.
func TestLeasesWithoutRoom(t *testing.T) {
	t.Parallel()
	p := &fake{lease: func(_ context.Context, name string) Look {
		n := 20_000
		if name == "small" {
			n = 10
		}
		return Look{Status: Changed, Lease: &contract.Lease{Framework: strings.Repeat("x", n)}}
	}}
	c := connect(t, p, Settings{Slots: 1})
	results, err := leaseAll(t, c, "large", "large", "large", "small", "large")
	if err != nil {
		t.Fatal(err)
	}
	var got []Status
	for _, r := range results {
		got = append(got, r.Status)
	}
	if !slices.Equal(got, []Status{Changed, Changed, Ask, Changed, Ask}) || p.leases() != 3 {
		t.Errorf("%v; %d leases stand", got, p.leases())
	}
}

// TestNothingStaysLeasedAfterAnError: neither with the producer, nor in the eyes of the caller, whichever part
// of what was asked for failed.
func TestNothingStaysLeasedAfterAnError(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 130 {
		names = append(names, fmt.Sprint("name", i))
	}
	for what, tt := range map[string]struct {
		at   int
		text string
		want error
	}{
		"the first":             {0, refused, errRefused},
		"in the middle":         {20, refused, errRefused},
		"in the second request": {70, refused, errRefused},
		"the last":              {129, refused, errRefused},
		"no answer at all":      {128, "", context.DeadlineExceeded},
	} {
		proceed := make(chan struct{})
		p := &fake{lease: func(_ context.Context, name string) Look {
			switch {
			case name != names[tt.at]:
				return Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
			case tt.text == "":
				<-proceed
			}
			return Look{Status: Changed, Lease: &contract.Lease{Framework: tt.text}}
		}}
		patience := time.Minute
		if tt.text == "" {
			patience = 500 * time.Millisecond
		}
		c := connectFor(t, p, Settings{Slots: 1}, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		results := make([]Look, len(names))
		err := c.Leases(ctx, names, contract.Request{}, results)
		cancel()
		close(proceed)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", what, err)
		}
		if i := slices.IndexFunc(results, func(l Look) bool { return l.Status == Changed || l.lease().ID != 0 }); i >= 0 {
			t.Errorf("%s: after an error there is %+v", what, results[i])
		}
		eventually(t, what+": no lease stands", func() bool { return p.leases() == 0 })
		var ids []contract.LeaseID
		for i := range 2 * MaxIDs {
			ids = append(ids, contract.LeaseID(i+1))
		}
		if tt.text == "" {
			continue
		}
		p.finds(func(id contract.LeaseID, _ bool) Look {
			switch id {
			case MaxIDs + 5:
				return Look{Status: Changed, Lease: &contract.Lease{Framework: tt.text}}
			case 3, MaxIDs + 1, MaxIDs + 8:
				return Look{Status: Changed, Lease: &contract.Lease{Framework: "good"}}
			default:
				return Look{Status: Unchanged}
			}
		})
		looks, err := refreshAll(t, c, false, ids...)
		if !errors.Is(err, tt.want) || slices.ContainsFunc(looks, func(l Look) bool { return l.Status == Changed }) {
			t.Errorf("%s: Refresh = %v, or a lease that was given back", what, err)
		}
		eventually(t, what+": no lease stands after Refresh", func() bool { return p.leases() == 0 })
	}
}

// TestOffers: the table begins the memory, beside which the mailbox works as ever.
func TestOffers(t *testing.T) {
	t.Parallel()
	p := &offering{}
	c := connect(t, p, Settings{Slots: 2})
	if p.writer == nil || c.Offers == nil || !c.Use() {
		t.Fatal("there is no table")
	}
	w := p.writer
	w.Begin()
	i, _ := w.Add("x")
	w.Write(i, &offers.Entry{Version: 3}, nil)
	w.End()
	var e [1]offers.Entry
	at, ok := c.Offers.Find("x")
	if _, read := c.Offers.Read(e[:], at); !ok || !read || e[0].Version != 3 {
		t.Errorf("read %+v of entry %d: %v, %v", e[0], at, ok, read)
	}
	c.Unuse()
	if results, err := leaseAll(t, c, "x"); err != nil || results[0].lease().Framework != "x" {
		t.Errorf("%+v, %v", results, err)
	}
	if plain := connect(t, &fake{}, Settings{Slots: 1}); plain.Offers != nil {
		t.Error("a table of a producer that offers nothing")
	}
}

// TestRefreshMakesNoGarbage on either side, while nothing changes.
func TestRefreshMakesNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	c := connect(t, &fake{}, Settings{Slots: 1, Spin: time.Millisecond})
	for _, n := range []int{1, 100, MaxIDs} {
		ids, reqs, results := make([]contract.LeaseID, n), make([]contract.Request, n), make([]Look, n)
		for i := range ids {
			ids[i] = contract.LeaseID(i + 1)
		}
		if allocs := testing.AllocsPerRun(100, func() {
			if err := c.Refresh(t.Context(), ids, reqs, false, false, results); err != nil || results[n-1].Status != Unchanged {
				t.Fatal(results[n-1], err)
			}
		}); allocs != 0 {
			t.Errorf("%v allocations to look at %d leases again", allocs, n)
		}
	}
}
