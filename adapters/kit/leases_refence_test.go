package kit

import (
	"slices"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// fenceIn is memory with a fence of that value.
func fenceIn(page Backing, value uint32) Memory {
	return Memory{Fence: page, Name: func(l *contract.Lease, ids []contract.SegmentID) {
		l.Fence = contract.CUDAWord{Page: ids[0], Size: 4096, Value: value}
	}}
}

// TestRefence: a lease has one fence after another, which may lie in one page after another. What they stand on
// stands as long as the lease, however many there were.
func TestRefence(t *testing.T) {
	t.Parallel()
	var leases Leases
	b, drops := &fakeBacking{key: "a"}, 0
	first := grant(t, &leases, contract.Lease{}, b, func() { drops++ })
	second := grant(t, &leases, contract.Lease{}, &fakeBacking{key: "a"}, nil)
	pages := []*fakeBacking{{key: "page"}, {key: "other page"}}
	var spare []*fakeBacking // further backings of the same pages
	ids := make([]contract.SegmentID, len(pages))
	for i := range uint32(20) {
		page := pages[i%2]
		if i >= 2 {
			page = &fakeBacking{key: page.key}
			spare = append(spare, page)
		}
		fence, ok := leases.Refence(first.ID, fenceIn(page, i))
		word, isWord := fence.(contract.CUDAWord)
		if !ok || !isWord || word.Value != i || i >= 2 && word.Page != ids[i%2] {
			t.Fatalf("Refence = %+v, %v; want value %d in page %d", fence, ok, i, ids[i%2])
		}
		ids[i%2] = word.Page
		f, err := leases.Descriptor(t.Context(), word.Page, true) // a host may write it
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for i, s := range spare {
		if s.closed != 1 {
			t.Errorf("backing %d of a page that was known was closed %d times", i, s.closed)
		}
	}
	if n := leases.Len(); n != 2 {
		t.Errorf("%d leases stand, want 2", n)
	}
	if err := leases.Release(t.Context(), second.ID); err != nil || b.closed != 0 || pages[0].closed+pages[1].closed != 0 {
		t.Errorf("the other lease took memory along, %v", err)
	}
	if err := leases.Release(t.Context(), first.ID); err != nil || drops != 1 || b.closed != 1 || pages[0].closed != 1 || pages[1].closed != 1 {
		t.Errorf("dropped %d times, closed %d, %d and %d times, %v", drops, b.closed, pages[0].closed, pages[1].closed, err)
	}
	if _, err := leases.Descriptor(t.Context(), ids[0], false); err == nil {
		t.Error("the page of a fence outlives its lease")
	}
}

// TestRefenceOfNothing: what a fence stands on is given back if there is no lease, and host memory may stay ready.
func TestRefenceOfNothing(t *testing.T) {
	t.Parallel()
	var leases Leases
	page := &fakeBacking{key: "page"}
	if fence, ok := leases.Refence(7, fenceIn(page, 1)); ok || page.closed != 1 {
		t.Errorf("Refence of no lease = %v, %v; closed %d times", fence, ok, page.closed)
	}
	l := grant(t, &leases, contract.Lease{}, nil, nil)
	if fence, ok := leases.Refence(l.ID, Memory{}); !ok || fence != (contract.Ready{}) {
		t.Errorf("Refence without a word = %v, %v", fence, ok)
	}
	if err := leases.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := leases.Refence(l.ID, fenceIn(page, 1)); ok || page.closed != 2 {
		t.Errorf("a lease has a fence after Close; closed %d times", page.closed)
	}
}

// TestRefenceBesideRelease: whoever is first, each page is given back as often as it was handed over.
func TestRefenceBesideRelease(t *testing.T) {
	t.Parallel()
	for range 300 {
		var leases Leases
		b := &fakeBacking{key: "a"}
		l := grant(t, &leases, contract.Lease{}, b, nil)
		var all sync.WaitGroup
		pages := make([]*fakeBacking, 4)
		for i := range pages {
			pages[i] = &fakeBacking{key: i}
			all.Go(func() { leases.Refence(l.ID, fenceIn(pages[i], 1)) })
		}
		all.Go(func() {
			if err := leases.Release(t.Context(), l.ID); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if i := slices.IndexFunc(pages, func(p *fakeBacking) bool { return p.closed != 1 }); i >= 0 || b.closed != 1 {
			t.Fatalf("page %d was closed %d times, the memory %d times", i, pages[max(i, 0)].closed, b.closed)
		}
	}
}
