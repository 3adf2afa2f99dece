package kit

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestAgain: what was granted stands until the last lease on it has ended, in whatever order they do.
func TestAgain(t *testing.T) {
	t.Parallel()
	var leases Leases
	b, drops := &fakeBacking{key: "a"}, 0
	first := grant(t, &leases, core.Lease{Writable: true}, b, func() { drops++ })
	standing := leases.Standing(first.ID)
	ids := []core.LeaseID{first.ID}
	for range 9 {
		id, ok := leases.Again(standing)
		if !ok || id <= ids[len(ids)-1] {
			t.Fatalf("Again = %d, %v after %v", id, ok, ids)
		}
		ids = append(ids, id)
	}
	if n := leases.Len(); n != len(ids) {
		t.Errorf("%d leases stand, want %d", n, len(ids))
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i, id := range ids {
		if drops != 0 || b.closed != 0 {
			t.Fatalf("given back while %d leases stand", len(ids)-i)
		}
		if f, err := leases.Descriptor(t.Context(), segmentOf(t, first).ID, true); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
		if err := leases.Release(t.Context(), id, id); err != nil {
			t.Error(err)
		}
	}
	if drops != 1 || b.closed != 1 || leases.Len() != 0 {
		t.Errorf("dropped %d times, closed %d times, %d leases stand; want 1, 1, 0", drops, b.closed, leases.Len())
	}
	if id, ok := leases.Again(standing); ok {
		t.Errorf("lease %d on what was given back", id)
	}
}

// TestAgainAfter: a lease with a fence of its own gives that back when it ends, and lets what it adds to
// stand until then.
func TestAgainAfter(t *testing.T) {
	t.Parallel()
	var leases Leases
	b, drops := &fakeBacking{key: "a"}, 0
	first := grant(t, &leases, core.Lease{}, b, func() { drops++ })
	standing := leases.Standing(first.ID)
	page := &fakeBacking{key: "page"}
	words, given := 0, []core.LeaseID{}
	fence := func() Memory {
		words++
		return Memory{Parts: []Backing{page}, Name: func(l *core.Lease, ids []core.SegmentID) {
			l.Fence = core.CUDAWord{Page: ids[0], Size: 4096, Value: uint32(words)}
		}}
	}
	for i := range 9 {
		id, got, ok := leases.AgainAfter(standing, fence())
		word, _ := got.(core.CUDAWord)
		if !ok || word.Value != uint32(i+1) {
			t.Fatalf("AgainAfter = %d, %v, %v", id, got, ok)
		}
		if f, err := leases.Descriptor(t.Context(), word.Page, false); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
		given = append(given, id)
	}
	rand.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
	spare := page.closed // backings of a segment that was known already
	for i, id := range append([]core.LeaseID{first.ID}, given...) {
		if drops != 0 || b.closed != 0 || page.closed != spare {
			t.Fatalf("given back while %d leases stand: dropped %d times, closed %d times", 10-i, drops, b.closed)
		}
		if err := leases.Release(t.Context(), id, id); err != nil {
			t.Error(err)
		}
	}
	if drops != 1 || b.closed != 1 || page.closed != spare+1 || leases.Len() != 0 {
		t.Errorf("dropped %d times, closed %d times, %d leases stand", drops, b.closed, leases.Len())
	}
	if id, _, ok := leases.AgainAfter(standing, fence()); ok || page.closed != spare+2 {
		t.Errorf("lease %d on what was given back, or a fence of none was not", id)
	}
}

// TestAgainOfNothing: there is nothing to grant again where nothing stands.
func TestAgainOfNothing(t *testing.T) {
	t.Parallel()
	var leases Leases
	if _, ok := leases.Again(Standing{}); ok {
		t.Error("a lease on the zero value")
	}
	if _, ok := leases.Again(leases.Standing(7)); ok {
		t.Error("a lease on one that there is not")
	}
	standing := leases.Standing(grant(t, &leases, core.Lease{}, nil, nil).ID)
	if _, ok := leases.Again(standing); !ok {
		t.Error("no other lease on an array without elements")
	}
	if err := leases.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := leases.Again(standing); ok {
		t.Error("a lease after Close")
	}
}

// TestAgainMeanwhile grants and gives back from many goroutines: what was granted ends exactly once.
func TestAgainMeanwhile(t *testing.T) {
	t.Parallel()
	var leases Leases
	for range 200 {
		drops := make(chan struct{}, 2)
		first := grant(t, &leases, core.Lease{}, &fakeBacking{key: "a"}, func() { drops <- struct{}{} })
		standing := leases.Standing(first.ID)
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for id, ok := leases.Again(standing); ok; id, ok = leases.Again(standing) {
					if len(drops) != 0 {
						t.Error("granted after the end")
					}
					if err := leases.Release(t.Context(), id); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if err := leases.Release(t.Context(), first.ID); err != nil {
			t.Error(err)
		}
		users.Wait()
		if len(drops) != 1 || leases.Len() != 0 {
			t.Fatalf("dropped %d times, %d leases stand", len(drops), leases.Len())
		}
	}
}
