package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// frameworks are those that must be there.
func frameworks() []string { return []string{"numpy", "torch", "jax"} }

// lab is one run of the benchmark: what has been started, and what is to be measured.
type lab struct {
	opts     options
	out      io.Writer
	dir      string
	report   *report
	subjects []*bench.Subject
	spinning *bench.Program // the one with the default of the hand-off
	ends     []func() error
}

func measure(ctx context.Context, opts options, out io.Writer) (_ *report, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l := &lab{opts: opts, out: out, dir: dir, report: &report{}}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	l.say("measuring all ways, in %d rounds", opts.rounds)
	if l.report.Rows, err = bench.Interleave(ctx, opts.rounds, l.subjects); err != nil {
		return nil, err
	}
	l.say("8 callers at full rate for %v", opts.hammer)
	if l.report.Hammer, err = hammer(ctx, l.spinning, opts); err != nil {
		return nil, err
	}
	if err := l.close(); err != nil {
		return nil, err
	}
	if len(opts.heapSizes) > 0 {
		if l.report.Heap, err = measureHeap(ctx, opts, out); err != nil {
			return nil, err
		}
	}
	l.report.Goals = goals(l.report, opts.sizes)
	return l.report, nil
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.out, format+"\n", args...) }

func (l *lab) close() error {
	var errs []error
	for _, end := range l.ends {
		errs = append(errs, end())
	}
	l.ends = nil
	return errors.Join(errs...)
}

// add has a way measured. A turn of calls follows as many that do not count.
func (l *lab) add(k bench.Key, calls int, callers ...bench.Caller) *bench.Subject {
	const warm = 10
	s := &bench.Subject{Key: k, Turn: bench.Calls(min(warm, calls), calls, callers...)}
	l.subjects = append(l.subjects, s)
	return s
}

// prepare starts all that is measured. The first program is alone when what it costs while nothing happens
// is measured.
func (l *lab) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		l.prepareLimits, l.prepareOurs, l.preparePython, l.prepareGRPC, l.prepareFlight, l.prepareCUDA,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// The ways without Python.
const (
	bareRing   = "bare ring"
	bareAsleep = "bare ring, asleep"
	bareFutex  = "bare futex"
)

func (l *lab) prepareLimits(ctx context.Context) error {
	for _, way := range []struct{ name, mode string }{
		{bareRing, handoffSpin.String()}, {bareAsleep, "0s"}, {bareFutex, viaFutex},
	} {
		caller, end, err := limit(ctx, way.mode)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		l.ends = append(l.ends, end)
		l.add(bench.Key{Way: way.name}, l.opts.turn, caller)
	}
	return nil
}

// Ours.
const (
	ours          = "ndbridge"
	oursAsleep    = "ndbridge, asleep"
	oursGRPC      = "ndbridge, by gRPC"
	published     = "ndbridge, published"
	publishedBusy = "ndbridge, published, Python busy"
	pulledBusy    = "ndbridge, Python busy"
)

func (l *lab) prepareOurs(ctx context.Context) error {
	for _, way := range []struct {
		name  string
		calls int
		set   func(p *hostplugin.Program)
	}{
		{ours, l.opts.turn, func(p *hostplugin.Program) { p.HandoffSpin = new(handoffSpin) }},
		{oursAsleep, l.opts.turn / 2, func(p *hostplugin.Program) { p.HandoffSpin = new(time.Duration(0)) }},
		{oursGRPC, l.opts.turn / 10, func(p *hostplugin.Program) { p.Handoff = new(false) }},
	} {
		l.say("starting %s", way.name)
		p := hostplugin.Program{Python: l.opts.python}
		way.set(&p)
		program, err := bench.Start(ctx, l.dir, p, bench.Arrays{Frameworks: frameworks(), Sizes: l.opts.sizes},
			hostplugin.WithLibDir(l.opts.lib), hostplugin.WithOutput(l.opts.program, l.opts.program))
		if err != nil {
			return err
		}
		l.ends = append(l.ends, program.Close)
		if l.spinning == nil {
			if err := l.first(ctx, program); err != nil {
				return err
			}
		}
		if err := l.addViews(program, way.name, way.calls); err != nil {
			return err
		}
	}
	return nil
}

// first measures what is measured of one program only.
func (l *lab) first(ctx context.Context, program *bench.Program) (err error) {
	l.spinning = program
	info, err := program.Info(ctx)
	if err != nil {
		return err
	}
	versions := map[string]string{}
	for _, f := range info.Frameworks {
		versions[f.Name] = f.Version
	}
	l.report.Machine = bench.NewMachine(info.Interpreter, versions)
	l.say("measuring what a session costs while nothing happens, for %v", l.opts.idle)
	if l.report.Idle, err = measureIdle(ctx, program, l.opts); err != nil {
		return err
	}
	return l.addPublished(program)
}

// addViews has views of a program's arrays measured: of all sizes, and of the smallest by several callers.
func (l *lab) addViews(p *bench.Program, way string, calls int) error {
	for _, framework := range frameworks() {
		for _, size := range l.opts.sizes {
			caller, err := p.Caller(bench.Name(framework, size))
			if err != nil {
				return err
			}
			l.add(bench.Key{Way: way, Framework: framework, Bytes: size, Callers: 1}, calls, caller).Count = caller
		}
		for _, n := range []int{2, 8} {
			k := bench.Key{Way: way, Framework: framework, Bytes: l.opts.sizes[0], Callers: n}
			var callers []bench.Caller
			for range n {
				caller, err := p.Caller(bench.Name(framework, k.Bytes))
				if err != nil {
					return err
				}
				callers = append(callers, caller)
			}
			l.add(k, max(calls/n, 1), callers...)
		}
	}
	return nil
}

// addPublished has published arrays measured, while the program waits and while it computes in Python, and
// beside the latter an array that it has not published.
func (l *lab) addPublished(p *bench.Program) error {
	for _, framework := range frameworks() {
		for _, size := range []int{l.opts.sizes[0], l.opts.sizes[len(l.opts.sizes)-1]} {
			caller, err := p.Caller(bench.PublishedName(framework, size))
			if err != nil {
				return err
			}
			l.add(bench.Key{Way: published, Framework: framework, Bytes: size, Callers: 1}, l.opts.turn, caller).Count = caller
		}
	}
	const framework = "numpy"
	size := l.opts.sizes[0]
	for _, way := range []struct {
		name, array string
		calls       int
	}{
		{publishedBusy, bench.PublishedName(framework, size), l.opts.turn / 4},
		{pulledBusy, bench.Name(framework, size), max(l.opts.turn/50, 2)},
	} {
		caller, err := p.Caller(way.array)
		if err != nil {
			return err
		}
		s := l.add(bench.Key{Way: way.name, Framework: framework, Bytes: size, Callers: 1}, way.calls, caller)
		s.Turn = whileBusy(p, s.Turn)
	}
	return nil
}

// whileBusy takes a turn while the program computes in pure Python.
func whileBusy(p *bench.Program, turn bench.Turn) bench.Turn {
	return func(ctx context.Context) ([]time.Duration, error) {
		end, err := p.Busy("spin")
		if err != nil {
			return nil, err
		}
		took, err := turn(ctx)
		return took, errors.Join(err, end())
	}
}

// The ways of Python.
const (
	ownExport   = "__dlpack__"
	stridedView = "StridedMemoryView"
	torchQueue  = "torch.multiprocessing Queue"
	arrowFlight = "Arrow Flight"
)

// addWorker has a way measured that a process measures by itself, for each size. It is left out if it cannot
// be had.
func (l *lab) addWorker(w *bench.Worker, way, framework string, pace func(size int) (calls, every int)) {
	for i, size := range l.opts.sizes {
		k := bench.Key{Way: way, Framework: framework, Bytes: size}
		if i == 0 {
			if _, err := w.Measure(k, 0, 1); err != nil {
				l.report.leaveOut(way+", "+framework, err.Error())
				return
			}
		}
		calls, every := pace(size)
		l.subjects = append(l.subjects, &bench.Subject{Key: k, Turn: w.Turn(k, min(calls/10, 10), calls), Every: every})
	}
}

// The paces: how many calls at a time, in one of how many rounds.

// inProcess is that of what takes a microsecond.
func (l *lab) inProcess(int) (calls, every int) { return l.opts.turn, 1 }

// anySize is that of what takes as long for all sizes.
func (l *lab) anySize(int) (calls, every int) { return l.opts.turn / 10, 1 }

// copied is that of what copies the array.
func (l *lab) copied(size int) (calls, every int) {
	switch {
	case size < bench.MiB:
		return l.opts.turn / 10, 1
	case size < 32*bench.MiB:
		return max(l.opts.turn/100, 1), 1
	case size < bench.GiB:
		return 1, max(l.opts.rounds/10, 1)
	default:
		return 1, max(l.opts.rounds/2, 1)
	}
}

func (l *lab) preparePython(ctx context.Context) error {
	w, err := bench.StartWays(ctx, l.opts.python, l.dir, l.opts.program)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, w.Close)
	for _, framework := range frameworks() {
		l.addWorker(w, ownExport, framework, l.inProcess)
	}
	for _, way := range []string{torchQueue, "torch.multiprocessing SimpleQueue"} {
		l.addWorker(w, way, "torch", l.anySize)
	}
	l.addWorker(w, "shared_memory", "numpy", l.anySize)
	l.addWorker(w, "shared_memory, copied in", "numpy", l.copied)
	l.addWorker(w, "pickle over a pipe", "numpy", l.copied)
	return nil
}

func (l *lab) prepareGRPC(ctx context.Context) error {
	p, err := startGRPC(ctx, l.opts, l.dir)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, p.close)
	for _, size := range l.opts.sizes {
		calls, every := l.copied(size)
		l.add(bench.Key{Way: "gRPC bytes", Framework: "numpy", Bytes: size}, calls, p.caller(size)).Every = every
	}
	return nil
}

// prepareFlight starts the client of Arrow Flight, which has a server in Python.
func (l *lab) prepareFlight(ctx context.Context) error {
	if l.opts.flight == "" || l.opts.more == "" {
		l.report.leaveOut(arrowFlight, "no client was built, or there is no interpreter with pyarrow")
		return nil
	}
	socket := filepath.Join(l.dir, "flight")
	w, err := bench.StartWorker(exec.CommandContext(ctx, l.opts.flight, l.opts.more, socket), l.opts.program)
	if err != nil {
		l.report.leaveOut(arrowFlight, err.Error())
		return nil
	}
	l.ends = append(l.ends, w.Close)
	l.addWorker(w, arrowFlight, "numpy", l.copied)
	return nil
}

// prepareCUDA starts an interpreter with cuda.core, whose views of numpy arrays are made in process.
func (l *lab) prepareCUDA(ctx context.Context) error {
	if l.opts.cuda == "" {
		l.report.leaveOut(stridedView, "there is no interpreter with cuda.core")
		return nil
	}
	w, err := bench.StartWays(ctx, l.opts.cuda, l.dir, l.opts.program)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, w.Close)
	l.addWorker(w, stridedView, "numpy", l.inProcess)
	return nil
}
