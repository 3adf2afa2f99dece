package calls

import (
	"context"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// gaveUp is the error of a wait for a name, which says what the program knew of it.
func (c *Client) gaveUp(ctx context.Context, answer []byte) error {
	var a Answer
	if a.Parse(answer, c.codec) != nil {
		return never(ctx)
	}
	said, ok := errors.AsType[*core.Error](c.codec.Error(a.Values))
	if !ok {
		return never(ctx)
	}
	about := *said
	about.Kind = ctx.Err()
	return &about
}

// ended gives an error of the mailbox its meaning.
func ended(err error) error {
	if err != nil && !errors.Is(err, ErrClosed) {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	return err
}

// failed reports whether an answer says that a call has failed.
func failed(answer []byte) bool { return len(answer) > 0 && Kind(answer[0]) == Failed }

// never is the error of a call that has not begun when ctx ended.
func never(ctx context.Context) error { return cancelled(ctx, NeverBegan, true) }

// cancelled is the error of a call whose context has ended.
func cancelled(ctx context.Context, state State, over bool) error {
	switch {
	case state == NeverBegan:
		return given(ctx, errors.New("the function has not begun, and never will"), "")
	case over:
		return given(ctx, errors.New("the function was interrupted by an exception"), "")
	default:
		return given(ctx, fmt.Errorf("the function still runs: the exception has not ended it within %v", grace),
			`let the function return to Python code sooner, end the session, or set on_stuck = "end"`)
	}
}

// given is the error of a call that was given up when ctx ended, and what became of it.
func given(ctx context.Context, became error, remedy string) error {
	e := &core.Error{Op: "call", Kind: ctx.Err(), Err: became, Remedy: remedy}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) || cause.Error() != ctx.Err().Error() {
		e.Err = fmt.Errorf("%w: %w", cause, e.Err)
	}
	return e
}
