package wire

import (
	"context"
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestRemedyOfAWait: what the program says of a call that its caller gives up is not lost, whichever of
// the two is first.
func TestRemedyOfAWait(t *testing.T) {
	t.Parallel()
	said := toStatus(&core.Error{Op: "lease", Kind: context.DeadlineExceeded, Err: errors.New("not there yet"), Remedy: "look again"})
	reason := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for name, ctx := range map[string]context.Context{"the program": t.Context(), "the caller": ended} {
		c := &Client{ctx: t.Context()}
		err := c.failed(ctx, "lease", "frame", said)
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Remedy != "look again" || errors.Is(err, reason) != (ctx.Err() != nil) {
			t.Errorf("%s first: %v", name, err)
		}
	}
}
