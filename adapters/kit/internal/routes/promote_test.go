package routes

import (
	"cmp"
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
	for name, c := range map[string]struct {
		outside  bool // it can be promoted
		late     bool // the heap came late
		elements int
		want     Want
		copies   int // that were made before
		due      bool
		promoted bool
	}{
		"the first look":       {outside: true},
		"after a copy":         {outside: true, copies: 1, due: true, promoted: true},
		"no copy is wanted":    {outside: true, want: Want{NoCopy: true}, due: true, promoted: true},
		"to write":             {outside: true, want: Want{Writable: true}, due: true, promoted: true},
		"not malloc's":         {copies: 1},
		"larger than all else": {outside: true, elements: 1 << 46, copies: 1, due: true},
		"kept by nobody":       {outside: true, late: true, copies: 1},
		"too small":            {outside: true, late: true, elements: 4, want: Want{Kept: func() bool { panic("asked, though it is too small") }}, copies: 1},
		"kept by an object":    {outside: true, late: true, want: Want{Kept: func() bool { return true }}, copies: 1, due: true, promoted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newFakeHeap(t, 4096)
			h.outside = c.outside
			r, array, reason := newRouter(t, h), Array{outside, doubles(t, cmp.Or(c.elements, 8<<10))}, contract.ReasonOutsideHeap
			if c.late {
				reason = contract.ReasonHeapOff
			}
			for range c.copies {
				r.Copied(array, reason)
			}
			r.Copied(array, contract.ReasonFrozen) // which does not count
			if got := r.Promotable(array, reason, c.want); got != c.due || h.copies != c.copies {
				t.Errorf("promotable: %v after %d copies, want %v", got, h.copies, c.due)
			}
			if !c.due {
				return
			}
			if got := r.Promote(array); got != c.promoted || (h.promoted == 1) != got || (h.refused == 1) == got {
				t.Errorf("promoted: %v, %d calls, %d refusals; want %v", got, h.promoted, h.refused, c.promoted)
			}
		})
	}
	if newRouter(t, nil).Promotable(Array{outside, doubles(t, 8<<10)}, contract.ReasonOutsideHeap, Want{}) {
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
		outside       bool // it can be promoted
		promotable    bool
		remedy        string
	}{
		"allowed": {contract.PromoteAlways, contract.PromoteAlways, true, true, "allow the copy, or copy it into a new array in the program"},
		"not yet": {
			contract.PromoteAlways, contract.PromoteSafe, true, false,
			`allow the copy, set promote = "always" for the program, or copy it into a new array in the program`,
		},
		"not malloc's":        {contract.PromoteAlways, contract.PromoteSafe, false, false, "allow the copy, or copy it into a new array in the program"},
		"whatever is allowed": {"nothing", contract.PromoteSafe, true, false, "allow the copy, or copy it into a new array in the program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newFakeHeap(t, 4096)
			h.outside, h.needs = c.outside, c.needs
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
