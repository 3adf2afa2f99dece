package suites

import (
	"bytes"
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
	"github.com/ndbridge/ndbridge/hostplugin"
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

// output keeps what a program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// alone runs a suite without a host.
func alone(t *testing.T, python string, s suite) result {
	t.Helper()
	dir, xml := t.TempDir(), filepath.Join(t.TempDir(), "result.xml")
	ctx, cancel := context.WithTimeout(t.Context(), runBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, slices.Concat([]string{script(t), xml, s.kind}, s.args)...) //nolint:gosec // the test's own
	cmd.Dir = dir
	cmd.Env = os.Environ()
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Minute // what the suite has started may hold on to its output
	begin := time.Now()
	err := cmd.Run()
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
	var out output
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{{
		Name: "suite", Python: python, Script: script(t), Args: slices.Concat([]string{xml, s.kind}, s.args), Env: environment,
		Dir: dir, Plugin: harness.Library(t, "ndbridge-all.so"), StartTimeout: 2 * time.Minute,
	}}}, hostplugin.WithLogger(harness.Discard()), hostplugin.WithOutput(&out, &out))
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	begin := time.Now()
	session, err := host.Start(ctx, "suite")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	l := &looking{session: session}
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
	if err := host.Close(); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	return result{cases: readResult(xml), status: status, output: out.String(), took: time.Since(begin), looks: l.looks}
}

// looking is a host that looks at the arrays of testdata/run.py, all of which are full of sevens.
type looking struct {
	session *hostplugin.Session
	cancel  context.CancelFunc
	group   sync.WaitGroup

	mu    sync.Mutex
	looks int
	wrong error
}

func (l *looking) begin(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	for _, names := range [][]string{{"large", "small", "shown"}, {"raw", "typed", "shown", "large"}} {
		l.group.Go(func() { l.loop(ctx, names) })
	}
	l.group.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for _, err := range l.session.Arrays(ctx) {
				l.check(ctx, "list", err)
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

func (l *looking) loop(ctx context.Context, names []string) {
	var v core.View
	sources := map[string]*hostplugin.Source{}
	for i := 0; ctx.Err() == nil; i++ {
		name := names[i%len(names)]
		if sources[name] == nil {
			source, err := l.session.Source(name)
			if err != nil {
				return // it is over
			}
			sources[name] = source
		}
		err := sources[name].Into(ctx, &v)
		if err == nil {
			err = sevens(&v)
		}
		if !l.check(ctx, name, err) {
			return
		}
		v.Close()
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
	for _, x := range [][]byte{b[:min(64, len(b))], b[max(0, len(b)-64):]} {
		for _, got := range x {
			if got != want {
				return fmt.Errorf("a byte is %d, want %d", got, want)
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
