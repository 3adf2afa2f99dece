package leases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Who waits for what is not published has its error's remedy from a look at the program shortly before its deadline, if
// that is not too close.
const (
	lastLook    = 100 * time.Millisecond
	minPatience = 100 * time.Millisecond
)

// Why a context of watch has ended before the caller's.
var (
	errEnded    = errors.New("the program is gone, or the session is closed")
	errFinished = errors.New("the script has ended")
)

// watch is one wait for versions. While it lasts, it tells who waits for what is not published, perhaps for ever, what the
// program has instead, as hinting does for other calls.
type watch struct {
	client  *Client
	sources []*Source
	cancel  context.CancelCauseFunc
	alone   func() bool // the end of the program does not end the wait any more
	timer   *time.Timer
	looked  chan hint
}

// hint is what a look at the program has found.
type hint struct {
	source int    // that is not published; none: all are
	remedy string // or ""
}

// none stands for the number of a source if an error concerns no one of them.
const none = -1

// watch begins a wait, which the caller ends. there ends with ctx, with the program, and when its script has ended well.
func (c *Client) watch(ctx context.Context, sources ...*Source) (there context.Context, w *watch) {
	there, cancel := context.WithCancelCause(ctx)
	w = &watch{client: c, sources: sources, cancel: cancel, looked: make(chan hint, 1)}
	w.alone = context.AfterFunc(c.over, func() { cancel(context.Cause(c.over)) })
	after, log := interval, c.Log
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if soon := left - min(lastLook, left/4); left >= minPatience && soon < interval {
			after, log = soon, slog.New(slog.DiscardHandler)
		}
	}
	w.timer = time.AfterFunc(after, func() { w.looked <- w.look(there, log) })
	return there, w
}

// finished reports whether a context of watch has ended because the script has ended well.
func finished(there context.Context) bool { return errors.Is(context.Cause(there), errFinished) }

// end ends the wait, and gives what is known by then. It is called once.
func (w *watch) end() hint {
	w.alone()
	w.cancel(nil)
	if w.timer.Stop() {
		return hint{source: none}
	}
	return <-w.looked
}

// why says why a wait that has ended gave nothing, and which source that concerns. over is what has ended it.
func (w *watch) why(ctx context.Context, over error, known hint) (failed int, err error) {
	c := w.client
	select {
	case <-c.Ended:
		return none, c.Why()
	default:
	}
	failed = w.missing()
	switch cause := context.Cause(ctx); {
	case cause == nil && errors.Is(over, core.ErrUnsupported): // there is no table any more
		return none, over
	case cause == nil && failed == none:
		return none, &core.Error{
			Kind: core.ErrNotFound, Err: fmt.Errorf("%w, and has published no newer version", errFinished),
			Remedy: "if functions that are called still publish, let the script end with ndbridge.serve()",
		}
	case cause == nil:
		about := *c.unpublished(ctx, w.sources[failed].Name)
		about.Kind, about.Err = core.ErrNotFound, fmt.Errorf("%w, and %w", errFinished, about.Err)
		return failed, &about
	case failed == none:
		return none, &core.Error{Kind: ctx.Err(), Err: cause}
	default:
		about := *notPublished()
		about.Kind = ctx.Err()
		if cause != ctx.Err() { //nolint:errorlint // the very same says nothing more
			about.Err = fmt.Errorf("%w; %w", cause, about.Err)
		}
		if known.source == failed && known.remedy != "" {
			about.Remedy = known.remedy
		}
		return failed, &about
	}
}

// missing gives the first source that is not published, or none.
func (w *watch) missing() int {
	table := w.client.use()
	if table == nil {
		return none
	}
	defer w.client.Handoff.Unuse()
	for i, s := range w.sources {
		if _, ok := entry(table, s); !ok {
			return i
		}
	}
	return none
}

// look asks for what is not published until ctx ends, and gives the last answer.
func (w *watch) look(ctx context.Context, log *slog.Logger) (last hint) {
	again := time.NewTicker(interval)
	defer again.Stop()
	last.source = none
	for {
		if i := w.missing(); i != none {
			name := w.sources[i].Name
			missing := w.client.unpublished(ctx, name)
			if ctx.Err() != nil {
				return last
			}
			near := missing.Remedy != notPublished().Remedy
			switch isNew := i != last.source; {
			case near && (isNew || last.remedy == ""):
				say(ctx, log, slog.LevelWarn, name, missing)
			case isNew:
				say(ctx, log, slog.LevelInfo, name, missing)
			}
			last = hint{source: i}
			if near {
				last.remedy = missing.Remedy
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return last
		}
	}
}

// unpublished asks the program what it has instead of a published array.
func (c *Client) unpublished(ctx context.Context, name string) *core.Error {
	about := notPublished()
	lease, err := c.Program.Lease(ctx, name, contract.Request{NoWait: true, NoCode: true, Copy: contract.CopyNever})
	switch missing, ok := errors.AsType[*core.Error](err); {
	case err == nil && lease.Version == 0, errors.Is(err, core.ErrNotShared):
		about.Remedy = "the program has a variable of that name: have it call ndbridge.publish, or use Refresh"
	case ok && errors.Is(err, core.ErrNotFound) && missing.Remedy != "":
		about.Remedy = missing.Remedy
	}
	if err == nil {
		c.releases.add(lease.ID)
	}
	return about
}
