package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// runBound is how long one suite may take.
const runBound = 40 * time.Minute

// environment is that of both runs. Threads of a library for linear algebra would make each fork one beside
// threads.
var environment = map[string]string{
	"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
}

func script(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "run.py"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// alone runs a suite without a host.
func alone(t *testing.T, python string, s suite) result {
	t.Helper()
	return process(t, python, s, nil, func(context.Context, int) {})
}

// process runs a suite in a process of its own, and beside it what is given its number, until it ends.
func process(t *testing.T, python string, s suite, env []string, beside func(ctx context.Context, pid int)) result {
	t.Helper()
	dir, xml := t.TempDir(), filepath.Join(t.TempDir(), "result.xml")
	ctx, cancel := context.WithTimeout(t.Context(), runBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, slices.Concat([]string{script(t), xml, s.kind}, s.args)...) //nolint:gosec // the test's own
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bootstraptest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Minute // what the suite has started may hold on to its output
	begin := time.Now()
	err := cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	var besides sync.WaitGroup
	running, ended := context.WithCancel(ctx)
	besides.Go(func() { beside(running, cmd.Process.Pid) })
	err = cmd.Wait()
	ended()
	besides.Wait()
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	return result{cases: readResult(xml), status: status, output: out.String(), took: time.Since(begin)}
}

// hosted runs a suite under a host that looks at the program's arrays all the time.
func hosted(t *testing.T, python string, s suite) result {
	t.Helper()
	dir, xml := t.TempDir(), filepath.Join(t.TempDir(), "result.xml")
	ctx, cancel := context.WithTimeout(t.Context(), runBound)
	defer cancel()
	var out bootstraptest.Buffer
	host, err := hostplugin.New(hostplugin.Config{Logger: harness.Discard(), Programs: []hostplugin.Program{{
		Name: "suite", Python: python, Script: script(t), Args: slices.Concat([]string{xml, s.kind}, s.args), Env: environment,
		Dir: dir, Plugin: harness.Library(t, "ndbridge-all.so"), StartTimeout: 2 * time.Minute,
		Stdout: &out, Stderr: &out,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	begin := time.Now()
	session, err := host.Start(ctx, "suite")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	l := &looking{session: session, more: []string{"shown"}}
	l.begin(ctx)
	err = session.Wait(ctx)
	status := 0
	if err != nil {
		status, _, _ = session.ExitStatus(ctx)
	}
	l.end()
	if ctx.Err() != nil {
		t.Errorf("%s under a host: not done after %v\n%s", s.name, runBound, lastLines(out.String()))
	}
	if l.wrong != nil {
		t.Errorf("%s: %v", s.name, l.wrong)
	}
	if l.looks == 0 {
		t.Errorf("%s: the host has seen nothing\n%s", s.name, lastLines(out.String()))
	}
	if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // some have to be killed
		t.Errorf("%s: %v", s.name, err)
	}
	return result{cases: readResult(xml), status: status, output: out.String(), took: time.Since(begin), looks: l.looks}
}

// looking is a host that looks at the arrays of testdata/run.py, all of which are full of sevens.
type looking struct {
	session *hostplugin.Session
	more    []string // what the program has published
	cancel  context.CancelFunc
	group   sync.WaitGroup

	mu    sync.Mutex
	looks int
	wrong error
}

func (l *looking) begin(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	l.group.Go(func() { l.follow(ctx, append([]string{"large", "small"}, l.more...)) })
	l.group.Go(func() { l.together(ctx, append([]string{"raw", "typed", "large"}, l.more...)) })
	l.group.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for _, err := range l.session.Arrays(ctx) {
				l.check(ctx, "list", err)
			}
			if searcher, ok := l.session.Producer().(contract.Searcher); ok {
				_, err := searcher.Search(ctx, contract.Search{Pattern: "**", Numbers: true})
				l.check(ctx, "search", err)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
}

func (l *looking) end() {
	l.cancel()
	l.group.Wait()
}

// turns is how often a view is looked at again before another one is taken.
const turns = 8

// follow looks at names in turn: by a new view, and then again by Refresh, or Latest of what is published.
func (l *looking) follow(ctx context.Context, names []string) {
	views, sources := make([]*core.View, len(names)), make([]*hostplugin.Source, len(names))
	for i, name := range names {
		var err error
		if sources[i], err = l.session.Source(name); err != nil {
			return // it is over
		}
	}
	defer func() {
		for _, v := range views {
			if v != nil {
				v.Close()
			}
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		i := n % len(names)
		if n/len(names)%turns == 0 && views[i] != nil {
			views[i].Close()
			views[i] = nil
		}
		var err error
		if names[i] == "shown" && n%2 == 0 {
			views[i], _, err = sources[i].Latest(ctx, views[i])
		} else {
			views[i], _, err = sources[i].Refresh(ctx, views[i])
		}
		if err == nil {
			err = sevens(views[i])
			views[i].Live()
		}
		if !l.check(ctx, names[i], err) {
			return
		}
	}
}

// together looks at all names at once.
func (l *looking) together(ctx context.Context, names []string) {
	for ctx.Err() == nil {
		group, err := l.session.Group(names...)
		if err != nil {
			return // it is over
		}
		for range turns {
			_, err := group.Refresh(ctx)
			for _, v := range group.Views() {
				if err == nil {
					err = sevens(v)
				}
			}
			if !l.check(ctx, "group", err) {
				group.Close()
				return
			}
		}
		group.Close()
	}
}

// sevens looks at the first bytes and the last ones.
func sevens(v *core.View) error {
	b, err := v.Bytes()
	if err != nil {
		return err
	}
	want := byte(7)
	if v.Layout().DType() == core.Float64 {
		b, want = b[:1], 0 // of 7.0, the byte at the low end
	}
	for i := range b[:min(64, len(b))] {
		for _, at := range []int{i, len(b) - 1 - i} {
			if got := b[at]; got != want {
				return fmt.Errorf("byte %d is %d, want %d: %s, %s, version %d", at, got, want, v.Route(), v.Reason(), v.Version())
			}
		}
	}
	return nil
}

// check counts a look, and reports whether the loop goes on.
func (l *looking) check(ctx context.Context, name string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.looks++
		return true
	}
	if ctx.Err() != nil || errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrClosed) {
		return false // the suite has ended; how, its status says
	}
	if l.wrong == nil {
		l.wrong = fmt.Errorf("a view of %s: %w", name, err)
	}
	return false
}
