package engine

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestPromoteWhatCameInstead: an array that the program has put in the place of one that was to be promoted is promoted as well; the same
// one is not tried twice, and names that always lead to another one come to an end.
func TestPromoteWhatCameInstead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		promoted uintptr
		tries    int
		want     bool
	}{
		"the first":             {0, 0, true},
		"the first, read often": {0, maxAttempts, true},
		"the same":              {4096, 1, false},
		"another one":           {8192, 1, true},
		"too many others":       {8192, maxAttempts, false},
	} {
		a := &granting{promoted: c.promoted, tries: c.tries}
		r := &reading{array: routes.Located{Array: routes.Array{Addr: 4096}}}
		if got := a.canPromote(r, contract.ReasonHeapOff); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
