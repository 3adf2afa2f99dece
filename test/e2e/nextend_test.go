package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestNextSaysHowTheProgramEnded: who waits for a version has the same cause as who asks for a view.
func TestNextSaysHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  string
		kind error
		want string
	}{
		"raised": {`raise ValueError("no more film")`, core.ErrPython, "ValueError: no more film"},
		"status": {`sys.exit(3)`, core.ErrUnavailable, "exited with status 3"},
		"killed": {`os.kill(os.getpid(), 9)`, core.ErrUnavailable, "killed"},
		"well":   {``, core.ErrNotFound, "the script has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, publishing+`
import os, time
go = False
remote.start()
ndbridge.publish("a", np.zeros(9))
while not go: time.sleep(0.01)
`+test.end+"\n", harness.Options{})
			src := source(t, run, "a")
			v, err := src.Next(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			group, err := run.Group("a", "b")
			if err != nil {
				t.Fatal(err)
			}
			one, all := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := src.Next(t.Context(), v)
				one <- err
			}()
			go func() { all <- group.Next(t.Context()) }()
			run.Remote.Exec(t, "go = True")
			for object, err := range map[string]error{"program/a": <-one, "program": <-all} {
				if name == "well" && object == "program" {
					object = "program/b"
				}
				if !errors.Is(err, test.kind) || !strings.HasPrefix(err.Error(), "next "+object+": ") || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Next = %v, want %s and %q", err, object, test.want)
				}
			}
			closed(t, v)
		})
	}
}

// TestCloseEndsGroupsThatWait: for a version, or for a name.
func TestCloseEndsGroupsThatWait(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
ndbridge.publish("a", np.zeros(9))
remote.serve()
`, harness.Options{})
	next := func(g *hostplugin.Group) error { return g.Next(t.Context()) }
	refresh := func(g *hostplugin.Group) error { _, err := g.Refresh(t.Context()); return err }
	for name, test := range map[string]struct {
		names []string
		wait  func(g *hostplugin.Group) error
	}{
		"for a version":              {[]string{"a"}, next},
		"for a name to be published": {[]string{"a", "never"}, next},
		"for a name":                 {[]string{"a", "never"}, refresh},
	} {
		g, err := run.Group(test.names...)
		if err != nil {
			t.Fatal(err)
		}
		if len(test.names) == 1 {
			if err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		waits := make(chan error, 1)
		go func() { waits <- test.wait(g) }()
		time.Sleep(50 * time.Millisecond) // if it does not wait by then, it ends at once and for the same reason
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range []error{<-waits, test.wait(g)} {
			if !errors.Is(err, core.ErrClosed) {
				t.Errorf("the group that waited %s and was closed: %v", name, err)
			}
		}
	}
	run.NoLeases(t)
}

// TestNextOfWhatIsNeverPublished: the log says so as it does for a view, and the error.
func TestNextOfWhatIsNeverPublished(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
ndbridge.publish({"frame": np.zeros(9), "a": 1})
remote.serve()
`, harness.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	all := make(chan error, 1)
	go func() {
		group, err := run.Group("a", "fram")
		if err == nil {
			err = group.Next(ctx)
		}
		all <- err
	}()
	_, err := source(t, run, "fram").Next(ctx, nil)
	for _, err := range []error{err, <-all} {
		const want = `next program/fram: context deadline exceeded: nothing is published under that name; did you mean "frame"?`
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("Next = %v, want %s", err, want)
		}
	}
	const record = `level=WARN msg="still waiting for an array" program=program array=fram cause="nothing is published under that name" ` +
		`remedy="did you mean \"frame\"?"`
	if n := strings.Count(run.Log.Text(), record); n != 2 {
		t.Errorf("%d records of two waits", n)
	}
	run.NoLeases(t)
}
