package routes

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestPromoteOutside: memory outside the heap is promoted once it was copied, or at once for who takes no copy, and not
// tried at each look if that fails.
func TestPromoteOutside(t *testing.T) {
	t.Parallel()
	_, outside := anonymous(t, 128<<10)
	array := Array{outside, doubles(t, 8<<10)}
	for name, c := range map[string]struct {
		size     int64 // of the memory that can be promoted
		want     Want
		copies   int // that were made before
		due      bool
		promoted bool
	}{
		"the first look":       {size: 128 << 10, promoted: true},
		"after a copy":         {size: 128 << 10, copies: 1, due: true, promoted: true},
		"no copy is wanted":    {size: 128 << 10, want: Want{NoCopy: true}, due: true, promoted: true},
		"to write":             {size: 128 << 10, want: Want{Writable: true}, due: true, promoted: true},
		"not malloc's":         {copies: 1},
		"larger than all else": {size: 1 << 50, copies: 1, due: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newFakeHeap(t, 4096)
			h.outside = c.size
			r := newRouter(t, h)
			for range c.copies {
				r.Copied(array, contract.ReasonOutsideHeap)
			}
			r.Copied(array, contract.ReasonFrozen) // which does not count
			if got := r.Promotable(array, contract.ReasonOutsideHeap, c.want); got != c.due || h.copies != c.copies {
				t.Errorf("promotable: %v after %d copies, want %v", got, h.copies, c.due)
			}
			if got := r.Promote(array); got != c.promoted || (h.promoted == 1) != got || (h.refused == 1) == got {
				t.Errorf("promoted: %v, %d calls, %d refusals; want %v", got, h.promoted, h.refused, c.promoted)
			}
		})
	}
	if newRouter(t, nil).Promotable(array, contract.ReasonOutsideHeap, Want{}) {
		t.Error("promotable without a heap")
	}
}

// TestPromoteIsNotAllowed: nothing is tried that the kernel refuses, and the error names the setting that allows it.
func TestPromoteIsNotAllowed(t *testing.T) {
	t.Parallel()
	_, outside := anonymous(t, 128<<10)
	array := Array{outside, doubles(t, 8<<10)}
	for name, c := range map[string]struct {
		needs, policy contract.PromotePolicy
		size          int64 // of the memory that can be promoted
		promotable    bool
		remedy        string
	}{
		"allowed": {contract.PromoteAlways, contract.PromoteAlways, 128 << 10, true, "allow the copy, or copy it into a new array in the program"},
		"not yet": {
			contract.PromoteAlways, contract.PromoteSafe, 128 << 10, false,
			`allow the copy, set promote = "always" for the program, or copy it into a new array in the program`,
		},
		"not malloc's":        {contract.PromoteAlways, contract.PromoteSafe, 0, false, "allow the copy, or copy it into a new array in the program"},
		"whatever is allowed": {"nothing", contract.PromoteSafe, 128 << 10, false, "allow the copy, or copy it into a new array in the program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newFakeHeap(t, 4096)
			h.outside, h.needs = c.size, c.needs
			r := newRouter(t, h)
			r.Configure(contract.Settings{Promote: c.policy})
			want := Want{NoCopy: true}
			if got := r.Promotable(array, contract.ReasonOutsideHeap, want); got != c.promotable {
				t.Errorf("promotable: %v", got)
			}
			_, _, err := r.Share(array, want)
			if e, ok := errors.AsType[*core.Error](err); !ok || e.Reason != contract.ReasonOutsideHeap || e.Remedy != c.remedy {
				t.Errorf("%v, want the remedy %q", err, c.remedy)
			}
		})
	}
}
