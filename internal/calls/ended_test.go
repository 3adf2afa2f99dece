package calls

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core/contract"
)

// TestEndedLeases: a request ends leases before anything else is done, no more than it has room for; one that cannot be sent gives
// them back.
func TestEndedLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	all := make([]contract.LeaseID, MaxEnded+8)
	for i := range all {
		all[i] = contract.LeaseID(i + 1)
	}
	w.ended = slices.Clone(all)
	if err := w.client.Call(t.Context(), &Request{Op: OpCall, Framework: strings.Repeat("x", 256)}, new(Answer)); err == nil {
		t.Fatal("a request was sent that cannot be written")
	}
	released := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.released)
	}
	for _, n := range []int{MaxEnded, 2 * MaxEnded, 2*MaxEnded + 8} {
		if got := released(); got != n {
			t.Errorf("%d leases have ended, want %d", got, n)
		}
		if n == MaxEnded { // they were given back by the request that was not sent
			w.mu.Lock()
			w.ended = slices.Clone(all)
			w.mu.Unlock()
		}
		if _, err := w.call(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	w.ended = slices.Clone(all[:1])
	w.mu.Unlock()
	if state, err := w.server.Cancel(0, w.client.number.Load()+1); state != NeverBegan || err != nil {
		t.Fatal(state, err)
	}
	before := released()
	if _, err := w.call(t.Context(), "x"); err == nil {
		t.Error("a call that was cancelled before has begun")
	}
	if n := released() - before; n != 1 {
		t.Errorf("a call that never begins has ended %d leases, want 1", n)
	}
}

// TestObjectsOutlive: the memory of a service that has ended stays while something counts in it, and goes with the next service.
func TestObjectsOutlive(t *testing.T) {
	t.Parallel()
	serve := func() (*Server, string) {
		s, err := NewServer(nobody{}, plain{}, Settings{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		var status unix.Stat_t
		if err := unix.Fstat(int(s.file.Fd()), &status); err != nil {
			t.Fatal(err)
		}
		return s, fmt.Sprintf(" %d ", status.Ino)
	}
	mapped := func(file string) bool {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(maps, []byte(file))
	}
	first, file := serve()
	count := held(first.mapping.Bytes(), 5)
	count.Add(1)
	for range 2 {
		second, other := serve()
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Fatal(err)
		}
		if mapped(other) || !mapped(file) {
			t.Fatalf("the memory in which an object counts is mapped: %v; that in which none does: %v", mapped(file), mapped(other))
		}
	}
	count.Add(^uint32(0))
	last, _ := serve()
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if mapped(file) {
		t.Error("the memory in which nothing counts any more is still mapped")
	}
}

// nobody serves nothing.
type nobody struct{ Callee }

func (nobody) Close() {}
