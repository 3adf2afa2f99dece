package calls

import (
	"slices"
	"strings"
	"testing"

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
	for _, n := range []int{MaxEnded, 2 * MaxEnded, 2*MaxEnded + 8} {
		w.mu.Lock()
		released := len(w.released)
		w.mu.Unlock()
		if released != n {
			t.Errorf("%d leases have ended, want %d", released, n)
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
}
