package kit

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func grant(t *testing.T, leases *Leases, l contract.Lease, b Backing, drop func()) contract.Lease {
	t.Helper()
	var m Memory
	if b != nil {
		m = HostMemory(b)
	}
	l, err := leases.Grant(l, m, drop)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func segmentOf(t *testing.T, l contract.Lease) contract.Segment {
	t.Helper()
	s, ok := l.Handle.(contract.Segment)
	if !ok {
		t.Fatalf("handle %T, want a segment", l.Handle)
	}
	return s
}

func TestLeasesShareSegments(t *testing.T) {
	t.Parallel()
	var leases Leases
	first, spare, other := &fakeBacking{key: "a"}, &fakeBacking{key: "a"}, &fakeBacking{key: "b"}
	var drops []string
	l1 := grant(t, &leases, contract.Lease{}, first, func() { drops = append(drops, "l1") })
	l2 := grant(t, &leases, contract.Lease{}, spare, func() { drops = append(drops, "l2") })
	l3 := grant(t, &leases, contract.Lease{}, other, nil)
	if l1.ID == l2.ID || l2.ID == l3.ID || l1.ID == 0 {
		t.Errorf("lease ids %d, %d, %d, want three", l1.ID, l2.ID, l3.ID)
	}
	if segmentOf(t, l1) != segmentOf(t, l2) || segmentOf(t, l1).ID == segmentOf(t, l3).ID {
		t.Errorf("segments %v, %v, %v: the first two have one key, the third another",
			l1.Handle, l2.Handle, l3.Handle)
	}
	if spare.closed != 1 || first.closed != 0 {
		t.Errorf("the spare backing was closed %d times, the used one %d", spare.closed, first.closed)
	}
	if err := leases.Release(t.Context(), l1.ID, l1.ID, 99); err != nil {
		t.Error(err)
	}
	if first.closed != 0 || leases.Len() != 2 {
		t.Errorf("a backing in use was closed %d times; %d leases stand, want 2", first.closed, leases.Len())
	}
	if err := leases.Release(t.Context(), l2.ID, l1.ID, l3.ID); err != nil {
		t.Error(err)
	}
	if first.closed != 1 || other.closed != 1 || leases.Len() != 0 {
		t.Errorf("closed %d and %d times, %d leases stand", first.closed, other.closed, leases.Len())
	}
	if want := []string{"l1", "l2"}; !slices.Equal(drops, want) {
		t.Errorf("dropped %v, want %v", drops, want)
	}
}

func TestLeasesKeepSegmentIDs(t *testing.T) {
	t.Parallel()
	var leases Leases
	use := func(key any) contract.SegmentID {
		l := grant(t, &leases, contract.Lease{}, &fakeBacking{key: key}, nil)
		if err := leases.Release(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		return segmentOf(t, l).ID
	}
	id := use("a")
	if again := use("a"); again != id {
		t.Errorf("the same memory is segment %d, then %d", id, again)
	}
	seen := map[contract.SegmentID]bool{id: true}
	for i := range maxRetired {
		next := use(i)
		if seen[next] {
			t.Fatalf("segment %d stands for two pieces of memory", next)
		}
		seen[next] = true
	}
	if again := use("a"); seen[again] {
		t.Errorf("segment %d was forgotten and used again", again)
	}
	if n := len(leases.retired.ids); n != maxRetired || len(leases.retired.order) != n {
		t.Errorf("%d ids and %d keys are remembered, want %d", n, len(leases.retired.order), maxRetired)
	}
}

// TestLeasesTellFilesApart makes file after file with the same name and, on most file systems, the same
// inode number: a host that has kept its mapping of one must not take it for the next.
func TestLeasesTellFilesApart(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		var leases Leases
		path := filepath.Join(dir, "ndbridge-"+rand.Text())
		seen := make(map[contract.SegmentID]int)
		for i := range 100 {
			if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				id := grantFile(t, &leases, path)
				if before, again := seen[id]; again && before != i {
					t.Fatalf("%s: file %d has the segment of file %d", dir, i, before)
				}
				seen[id] = i
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != 100 {
			t.Errorf("%s: %d segments for 100 files", dir, len(seen))
		}
	}
}

// grantFile leases a file and ends the lease.
func grantFile(t *testing.T, leases *Leases, path string) contract.SegmentID {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := FileSegment(f)
	if err != nil {
		t.Fatal(err)
	}
	l := grant(t, leases, contract.Lease{}, b, nil)
	if err := leases.Release(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	return segmentOf(t, l).ID
}

func TestLeasesDescriptor(t *testing.T) {
	t.Parallel()
	var leases Leases
	l := grant(t, &leases, contract.Lease{}, &fakeBacking{key: 1}, nil)
	id := segmentOf(t, l).ID
	if f, err := leases.Descriptor(t.Context(), id, false); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := leases.Descriptor(t.Context(), id, true); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("writing without a writable lease: %v, want ErrReadOnly", err)
	}
	w := grant(t, &leases, contract.Lease{Writable: true}, &fakeBacking{key: 1}, nil)
	if f, err := leases.Descriptor(t.Context(), id, true); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := leases.Release(t.Context(), w.ID); err != nil {
		t.Error(err)
	}
	if _, err := leases.Descriptor(t.Context(), id, true); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("writing after the writable lease has ended: %v, want ErrReadOnly", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := leases.Descriptor(ended, id, false); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
	if err := leases.Release(t.Context(), l.ID); err != nil {
		t.Error(err)
	}
	if _, err := leases.Descriptor(t.Context(), id, false); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("without a lease: %v, want ErrNotFound", err)
	}
}

// A descriptor is opened without the lock, so the last lease may end meanwhile: what it stands on
// must not be given back before.
func TestLeasesReleaseDuringDescriptor(t *testing.T) {
	t.Parallel()
	var leases Leases
	b := &fakeBacking{key: 1}
	dropped := false
	l := grant(t, &leases, contract.Lease{}, b, func() { dropped = true })
	b.during = func() {
		if err := leases.Release(t.Context(), l.ID); err != nil {
			t.Error(err)
		}
		if b.closed != 0 || dropped {
			t.Error("memory was given back while its descriptor was being opened")
		}
	}
	f, err := leases.Descriptor(t.Context(), segmentOf(t, l).ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if b.closed != 1 || !dropped || leases.Len() != 0 {
		t.Errorf("closed %d times, dropped %v, %d leases", b.closed, dropped, leases.Len())
	}
}

func TestLeasesClose(t *testing.T) {
	t.Parallel()
	var leases Leases
	var dropped int
	b := &fakeBacking{key: 1}
	grant(t, &leases, contract.Lease{}, b, func() { dropped++ })
	grant(t, &leases, contract.Lease{Route: contract.RouteEmpty}, nil, func() { dropped++ })
	if err := leases.Close(); err != nil {
		t.Error(err)
	}
	if dropped != 2 || b.closed != 1 || leases.Len() != 0 {
		t.Errorf("%d dropped, closed %d times, %d leases stand", dropped, b.closed, leases.Len())
	}
	late := &fakeBacking{key: 2}
	if _, err := leases.Grant(contract.Lease{}, HostMemory(late), func() { dropped++ }); !errors.Is(err, core.ErrClosed) {
		t.Errorf("granted after Close: %v, want ErrClosed", err)
	}
	if late.closed != 1 || dropped != 3 {
		t.Errorf("what was refused was closed %d times; %d dropped, want 3", late.closed, dropped)
	}
}

func TestLeasesConcurrent(t *testing.T) {
	t.Parallel()
	var leases Leases
	var granted, dropped, seen atomic.Int64
	var ids sync.Map
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 300 {
				l, err := leases.Grant(contract.Lease{}, HostMemory(&fakeBacking{key: (worker + i) % 5}), func() { dropped.Add(1) })
				if err != nil {
					t.Error(err)
					return
				}
				granted.Add(1)
				if _, twice := ids.LoadOrStore(l.ID, true); twice {
					t.Errorf("lease %d was granted twice", l.ID)
				}
				segment, _ := l.Handle.(contract.Segment)
				if f, err := leases.Descriptor(t.Context(), segment.ID, false); err != nil {
					t.Error(err)
				} else {
					seen.Add(1)
					f.Close()
				}
				for range 2 {
					if err := leases.Release(t.Context(), l.ID); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != dropped.Load() || seen.Load() != granted.Load() || leases.Len() != 0 {
		t.Errorf("%d granted, %d opened, %d dropped, %d stand",
			granted.Load(), seen.Load(), dropped.Load(), leases.Len())
	}
}
