package leases

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestStrict: a strict cache maps nothing that can shrink, whatever is said about it, and asks for no
// descriptor of what is said to.
func TestStrict(t *testing.T) {
	t.Parallel()
	d := &describer{file: unsealed(t, 4096)}
	c := NewSegments(d, true)
	_, err := c.use(t.Context(), contract.Segment{ID: 1, Size: 4096}, false)
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrNotShared) ||
		e.Reason != contract.ReasonMappedFile || e.Remedy == "" || d.calls != 0 {
		t.Errorf("Map = %v, %d calls", err, d.calls)
	}
	if _, err := c.use(t.Context(), segment(1, 4096), false); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("Map of what is said to be sealed = %v", err)
	}
	closed(t, c)
	c = NewSegments(newDescriber(t, 4096), true)
	closed(t, mapped(t, c, segment(1, 4096), false), c)
}
