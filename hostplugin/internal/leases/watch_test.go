package leases

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// nextAll calls NextAll in the background, and returns when that sleeps.
func (w *world) nextAll(ctx context.Context, names ...string) <-chan looked {
	w.t.Helper()
	before, result := w.sleepers(), make(chan looked, 1)
	sources := make([]*Source, len(names))
	for i, name := range names {
		sources[i] = &Source{Name: name}
	}
	views := make([]*core.View, len(names))
	go func() {
		failed, err := w.c.nextAll(ctx, sources, views)
		for _, v := range views {
			if v != nil {
				w.keep(v)
			}
		}
		if e, ok := errors.AsType[*core.Error](err); ok && failed >= 0 {
			about := *e
			about.Object = names[failed]
			err = &about
		}
		result <- looked{nil, err}
	}()
	eventually(w.t, "NextAll sleeps", func() bool { return w.sleepers() > before })
	return result
}

// says holds an error to its category and its text, which must name the array that it concerns, if any.
func says(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || err.Error() != text {
		t.Errorf("the error is\n%v, want\n%v", err, text)
	}
}

// TestNextSaysWhyTheProgramIsGone as other calls do, and what it waited for was not an array's fault.
func TestNextSaysWhyTheProgramIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x")
	one, all := w.next(t.Context(), &Source{Name: "y"}, nil), w.nextAll(t.Context(), "x", "y")
	close(w.gone)
	const text = "session p: unavailable: it exited with status 3"
	says(t, (<-one).err, core.ErrUnavailable, text)
	says(t, (<-all).err, core.ErrUnavailable, text)
}

// TestNextEndsWithTheScript: nothing comes any more, but what was published is given.
func TestNextEndsWithTheScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &Source{Name: "x"}
	w.publish(1, "x")
	v, _ := w.latest(s, nil)
	one, missing := w.next(t.Context(), s, v), w.next(t.Context(), &Source{Name: "y"}, nil)
	all, allMissing := w.nextAll(t.Context(), "x", "y"), w.nextAll(t.Context(), "y", "x")
	close(w.finished)
	const never = "not found: the script has ended, and nothing is published under that name; " +
		"have the program call ndbridge.publish, or use Refresh for a variable"
	says(t, (<-one).err, core.ErrNotFound, "not found: the script has ended, and has published no newer version; if functions that are called still publish, let the script end with ndbridge.serve()")
	says(t, (<-missing).err, core.ErrNotFound, never)
	for _, result := range []<-chan looked{all, allMissing} {
		says(t, (<-result).err, core.ErrNotFound, "y: "+never)
	}
	w.publish(2, "x")
	w.publish(3, "y")
	next, err := w.c.Next(t.Context(), s, v, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	w.shows(next, 2, 2)
	views := []*core.View{next, nil}
	if _, err := w.c.nextAll(t.Context(), []*Source{s, {Name: "y"}}, views); err != nil {
		t.Fatal(err)
	}
	w.shows(views[1], 1, 3)
	_, err = w.c.nextAll(t.Context(), []*Source{s, {Name: "y"}}, views)
	says(t, err, core.ErrNotFound, "not found: the script has ended, and has published no newer version; if functions that are called still publish, let the script end with ndbridge.serve()")
}

// TestNextSaysWhatIsMissing when its context ends, and what the program has instead if there was time to ask.
func TestNextSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x")
	w.set("variable", 1)
	w.setCopied("copied", 1)
	x := &Source{Name: "x"}
	v, _ := w.latest(x, nil)
	const never, variable = "nothing is published under that name; have the program call ndbridge.publish, or use Refresh for a variable",
		"nothing is published under that name; the program has a variable of that name: have it call ndbridge.publish, or use Refresh"
	ctx, cancel := context.WithTimeout(t.Context(), 10*minPatience)
	defer cancel()
	canceled, cancelNow := context.WithCancelCause(t.Context())
	defer cancelNow(nil)
	for _, test := range []struct {
		result <-chan looked
		kind   error
		text   string
	}{
		{w.next(ctx, x, v), context.DeadlineExceeded, "context deadline exceeded"},
		{w.next(ctx, &Source{Name: "y"}, nil), context.DeadlineExceeded, "context deadline exceeded: " + never},
		{w.next(ctx, &Source{Name: "variable"}, nil), context.DeadlineExceeded, "context deadline exceeded: " + variable},
		{w.next(ctx, &Source{Name: "copied"}, nil), context.DeadlineExceeded, "context deadline exceeded: " + variable},
		{w.nextAll(ctx, "x", "variable", "y"), context.DeadlineExceeded, "variable: context deadline exceeded: " + variable},
		{w.next(canceled, &Source{Name: "variable"}, nil), context.Canceled, "context canceled: time for tea; " + never},
	} {
		if errors.Is(test.kind, context.Canceled) {
			cancelNow(errors.New("time for tea"))
		}
		says(t, (<-test.result).err, test.kind, test.text)
	}
	w.stand(1)
}

// TestNextAsksNothingInVain: who waits for a short time only, or for what is published, costs the program nothing.
func TestNextAsksNothingInVain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x")
	w.set("y", 2)
	s := &Source{Name: "x"}
	v, _ := w.latest(s, nil)
	w.took()
	for patience, s := range map[time.Duration]*Source{minPatience - 1: {Name: "y"}, minPatience * 2: s} {
		before := v
		if s.Name == "y" {
			before = nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := w.c.Next(ctx, s, before, contract.Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next = %v", err)
		}
		cancel()
	}
	if asked, mailed := w.took(); len(asked)+len(mailed) != 0 {
		t.Errorf("the program was asked for %q and %q", asked, mailed)
	}
}

// TestNextLogsWhatIsMissing of each name once.
func TestNextLogsWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	w.c.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.set("b", 1)
	result := w.nextAll(t.Context(), "a", "b")
	time.Sleep(2*interval + interval/2)
	w.publish(1, "a")
	time.Sleep(interval)
	w.publish(1, "b")
	if err := (<-result).err; err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 2 ||
		strings.Count(text, `level=INFO msg="still waiting for an array" array=a cause="nothing is published under that name"`) != 1 ||
		strings.Count(text, `level=WARN msg="still waiting for an array" array=b `) != 1 {
		t.Errorf("the log says\n%s", text)
	}
}
