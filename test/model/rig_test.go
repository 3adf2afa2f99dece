package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// setup is one way to run the program.
type setup struct {
	name       string
	python     string
	frameworks string
	plugin     string
	change     func(*hostplugin.Program)
	hammer     bool // the host looks without pause while steps run
	grpc       bool // there is no shared memory to ask through, and none for versions
}

// rig is a program under a host, and the same program without one.
type rig struct {
	setup
	host    *hostplugin.Host
	session *hostplugin.Session
	log     *harness.Log
	program *peer
	twin    *twin
	hello   *hello
	lookers []looker
	sources *sources // by which kept views are refreshed
	hammer  *hammer

	state   map[string]*statement
	watch   map[int]*watched
	kept    [slots]*kept
	ids     int      // of kept views
	pending request  // what the programs have not been told yet
	dirty   bool     // the host has written since the program said what its arrays are
	unsaid  []event  // the steps of pending
	told    []event  // what has happened, each step by its statement
	story   []string // the same, for people
	buf     []byte
	steps   int
	single  bool // run the steps one by one
}

// kept is a view that the host goes on holding.
type kept struct {
	view *core.View
	id   int
	of   string
	how  asking
	sum  uint32 // of a copy
}

// modelScript is the program's file.
func modelScript(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "program.py"))
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// programEnv keeps Python from writing beside the sources, and has glibc map what is not small separately, so that buffers of
// Python's own can become shared.
var programEnv = map[string]string{
	"PYTHONDONTWRITEBYTECODE": "1", "PYTHONFAULTHANDLER": "1", "JAX_PLATFORMS": "cpu", "MALLOC_MMAP_THRESHOLD_": "65536",
}

// startRig starts both programs. The caller closes the rig.
func startRig(ctx context.Context, s setup, script string) (r *rig, err error) {
	r = &rig{setup: s, log: harness.NewLog()}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start %s: %w\n%s", s.name, err, r.log.Text())
			r.close()
		}
	}()
	if r.program, err = newPeer(); err != nil {
		return r, err
	}
	if r.twin, err = startTwin(s.python, script, s.frameworks); err != nil {
		return r, err
	}
	program := hostplugin.Program{
		Name: "program", Python: s.python, Script: script, Args: []string{r.program.socket(), s.frameworks},
		Env: programEnv, Plugin: s.plugin, StartTimeout: answerBound,
	}
	if s.change != nil {
		s.change(&program)
	}
	config := hostplugin.Config{Programs: []hostplugin.Program{program}, Logger: r.log.Logger()}
	if r.host, err = hostplugin.New(config); err != nil {
		return r, err
	}
	if r.session, err = r.host.Start(ctx, "program"); err != nil {
		return r, err
	}
	if r.hello, err = r.program.greet(); err != nil {
		return r, err
	}
	if err = r.twin.greet(); err != nil {
		return r, err
	}
	r.sources = newSources(r.session)
	r.lookers = lookers(r.session, !s.grpc, r.serial)
	if s.hammer {
		r.hammer = startHammer(ctx, r.session, r.hello.Paths)
	}
	return r, nil
}

func (r *rig) close() {
	if r.hammer != nil {
		r.hammer.close()
	}
	if r.program != nil {
		r.program.close()
	}
	if r.host != nil {
		r.host.Close()
	}
	if r.twin != nil {
		r.twin.close()
	}
}

// reset brings both programs to where they began.
func (r *rig) reset(ctx context.Context) error {
	for i := range r.kept {
		r.let(i)
	}
	for _, l := range r.lookers {
		l.reset()
	}
	r.state, r.watch, r.unsaid, r.told, r.story, r.steps = map[string]*statement{}, nil, nil, nil, nil, 0
	r.pending = request{Reset: true}
	if err := r.sync(); err != nil {
		return err
	}
	if r.hammer != nil { // it has looked until now
		r.hammer.reset()
	}
	return r.noLeases(ctx)
}

// noLeases holds that no lease stands: there is no view.
func (r *rig) noLeases(ctx context.Context) error {
	for deadline := time.Now().Add(answerBound); ; time.Sleep(time.Millisecond) {
		info, err := r.session.Info(ctx)
		if err != nil {
			return failed("info", "Session.Info: %v", err)
		}
		if info.Leases == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return failed(leaks, "%d leases stand, and no view is open", info.Leases)
		}
	}
}

// run runs a sequence of events from the beginning.
func (r *rig) run(ctx context.Context, events []event) error {
	if err := r.reset(ctx); err != nil {
		return err
	}
	for _, e := range events {
		if err := r.happen(ctx, e); err != nil {
			return err
		}
	}
	if err := r.sync(); err != nil {
		return err
	}
	return r.twin.flush()
}

func (r *rig) happen(ctx context.Context, e event) error {
	switch e.kind {
	case step, text:
		if e.kind == step {
			r.pending.Steps = append(r.pending.Steps, []any{e.name, e.n})
		} else {
			r.pending.Steps = append(r.pending.Steps, []any{e.name})
		}
		r.unsaid = append(r.unsaid, e)
		if r.single {
			return r.sync()
		}
		return nil
	case look, listed, poke, drop, again, live:
	}
	if e.kind == drop && len(r.pending.Steps) == 0 {
		r.told = append(r.told, e)
		r.let(e.keep)
		return nil
	}
	if len(r.pending.Steps) > 0 || r.dirty {
		if err := r.sync(); err != nil {
			return err
		}
	}
	r.told = append(r.told, e)
	switch e.kind {
	case look:
		return r.look(ctx, e)
	case listed:
		return r.list(ctx)
	case poke:
		return r.poke(e)
	case again:
		return r.again(ctx, e.keep)
	case live:
		return r.live(e.keep)
	case drop:
		r.let(e.keep)
	case step, text:
	}
	return nil
}

// sync has both programs run the steps and say what their arrays are, and looks at the kept views.
func (r *rig) sync() error {
	var request request
	request, r.pending, r.dirty = r.pending, request, false
	if r.hammer != nil {
		r.hammer.begin()
	}
	a, err := r.program.ask(&request)
	if r.hammer != nil {
		if wrong := r.hammer.end(); wrong != nil {
			return wrong
		}
	}
	if err != nil {
		r.told = append(r.told, r.unsaid...)
		return r.died(err)
	}
	maps.Copy(r.state, a.State)
	r.watch = a.Watch
	r.steps += len(request.Steps)
	r.write(a)
	r.unsaid = nil
	r.twin.give(&request, a)
	if err := r.twin.wrong(); err != nil {
		return err
	}
	return r.lookAtKept()
}

// died says how the program ended.
func (r *rig) died(err error) error {
	select {
	case <-r.session.Done():
		err = r.session.Err()
	case <-time.After(5 * time.Second):
	}
	return failed(died, "the program does not answer any more: %v", err)
}

// write notes the steps of an answer.
func (r *rig) write(a *answer) {
	for _, line := range a.Log {
		if line == nil {
			continue
		}
		r.told = append(r.told, event{kind: text, name: line[0], keep: -1})
		if line[1] != "" {
			line = []string{line[0] + "  # raises " + line[1]}
		}
		r.story = append(r.story, line[0])
	}
}

// note says for people what the host does.
func (r *rig) note(format string, args ...any) {
	r.story = append(r.story, "# host: "+fmt.Sprintf(format, args...))
}

// The kinds of failure after which a program is of no use any more.
const (
	died  = "died"
	leaks = "leases"
)

// failure is what the model is there to find.
type failure struct {
	kind string // the same for what is probably the same defect
	text string
}

func (f *failure) Error() string { return f.text }

func failed(kind, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// about says of a failure what it is about.
func about(err error, format string, args ...any) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return &failure{f.kind, fmt.Sprintf(format, args...) + ": " + f.text}
	}
	return err
}

// inKind tells a failure from others of its kind.
func inKind(err error, more string) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return &failure{f.kind + more, f.text}
	}
	return err
}

// ignores reports whether a failure is of a kind that is to be passed over.
func (*rig) ignores(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && *ignoreFlag != "" && regexp.MustCompile(*ignoreFlag).MatchString(f.kind)
}

// startTwin runs the program by itself.
func startTwin(python, script, frameworks string) (*twin, error) {
	p, err := newPeer()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(python, script, p.socket(), frameworks) //nolint:gosec,noctx // the test's own; it ends with close
	cmd.Env = os.Environ()
	for name, value := range programEnv {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.close()
		return nil, err
	}
	return newTwin(p, cmd), nil
}
