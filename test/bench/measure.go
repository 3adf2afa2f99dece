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
	plan     bench.Plan
	spinning *bench.Program // the one with the default of the hand-off
	ends     []func() error
}

func measure(ctx context.Context, opts options, out io.Writer) (_ *report, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l := &lab{opts: opts, out: out, dir: dir, report: &report{}, plan: opts.plan}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	l.report.LeftOut = l.plan.LeftOut
	l.say("measuring all ways, in %d rounds", opts.plan.Rounds)
	if l.report.Rows, err = l.plan.Run(ctx); err != nil {
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
	l.report.Goals = goals(l.report, opts.plan.Sizes)
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
		l.plan.Add(bench.Key{Way: way.name}, l.plan.Turn, caller)
	}
	return nil
}

// Ours.
const (
	ours          = bench.Ours
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
		{ours, l.plan.Turn, func(p *hostplugin.Program) { p.HandoffSpin = new(handoffSpin) }},
		{oursAsleep, l.plan.Turn / 2, func(p *hostplugin.Program) { p.HandoffSpin = new(time.Duration(0)) }},
		{oursGRPC, l.plan.Turn / 10, func(p *hostplugin.Program) { p.Handoff = new(false) }},
	} {
		l.say("starting %s", way.name)
		p := hostplugin.Program{Python: l.opts.python}
		way.set(&p)
		program, err := bench.Start(ctx, l.dir, p, bench.Arrays{Frameworks: frameworks(), Sizes: l.plan.Sizes},
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
		if err := l.plan.AddViews(p, way, framework, calls); err != nil {
			return err
		}
		for _, n := range []int{2, 8} {
			k := bench.Key{Way: way, Framework: framework, Bytes: l.plan.Sizes[0], Callers: n}
			var callers []bench.Caller
			for range n {
				caller, err := p.Caller(bench.Name(framework, k.Bytes))
				if err != nil {
					return err
				}
				callers = append(callers, caller)
			}
			l.plan.Add(k, max(calls/n, 1), callers...)
		}
	}
	return nil
}

// addPublished has published arrays measured, while the program waits and while it computes in Python, and
// beside the latter an array that it has not published.
func (l *lab) addPublished(p *bench.Program) error {
	for _, framework := range frameworks() {
		for _, size := range []int{l.plan.Sizes[0], l.plan.Sizes[len(l.plan.Sizes)-1]} {
			caller, err := p.Caller(bench.PublishedName(framework, size))
			if err != nil {
				return err
			}
			l.plan.Add(bench.Key{Way: published, Framework: framework, Bytes: size}, l.plan.Turn, caller).Count = caller
		}
	}
	const framework = "numpy"
	size := l.plan.Sizes[0]
	for _, way := range []struct {
		name, array string
		calls       int
	}{
		{publishedBusy, bench.PublishedName(framework, size), l.plan.Turn / 4},
		{pulledBusy, bench.Name(framework, size), max(l.plan.Turn/50, 2)},
	} {
		caller, err := p.Caller(way.array)
		if err != nil {
			return err
		}
		s := l.plan.Add(bench.Key{Way: way.name, Framework: framework, Bytes: size}, way.calls, caller)
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

func (l *lab) preparePython(ctx context.Context) error {
	w, err := bench.StartWays(ctx, l.opts.python, l.dir, l.opts.program)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, w.Close)
	for _, framework := range frameworks() {
		l.plan.AddWorker(w, bench.OwnExport, framework, bench.InProcess)
	}
	l.plan.AddWorker(w, bench.TorchQueue, "torch", bench.AnySize)
	l.plan.AddWorker(w, bench.TorchSimpleQueue, "torch", bench.AnySize)
	l.plan.AddWorker(w, bench.SharedMemory, "numpy", bench.AnySize)
	l.plan.AddWorker(w, bench.SharedMemoryCopy, "numpy", bench.Copied)
	l.plan.AddWorker(w, bench.Pickle, "numpy", bench.Copied)
	return nil
}

// The ways of which a process of another kind has the array.
const (
	grpcBytes   = "gRPC bytes"
	arrowFlight = "Arrow Flight"
)

func (l *lab) prepareGRPC(ctx context.Context) error {
	p, err := startGRPC(ctx, l.opts, l.dir)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, p.close)
	for _, size := range l.plan.Sizes {
		calls, every := bench.Copied(&l.plan, size)
		s := l.plan.Add(bench.Key{Way: grpcBytes, Framework: "numpy", Bytes: size}, calls, p.caller(size))
		s.Turn, s.Every = p.turn(size, l.plan.Sizes[0], s.Turn), every
	}
	return nil
}

// prepareFlight starts the client of Arrow Flight, which has a server in Python.
func (l *lab) prepareFlight(ctx context.Context) error {
	if l.opts.flight == "" || l.opts.more == "" {
		l.plan.LeaveOut(arrowFlight, "no client was built, or there is no interpreter with pyarrow")
		return nil
	}
	socket := filepath.Join(l.dir, "flight")
	w, err := bench.StartWorker(exec.CommandContext(ctx, l.opts.flight, l.opts.more, socket), l.opts.program)
	if err != nil {
		l.plan.LeaveOut(arrowFlight, err.Error())
		return nil
	}
	l.ends = append(l.ends, w.Close)
	l.plan.AddWorker(w, arrowFlight, "numpy", bench.Copied)
	return nil
}

// prepareCUDA starts an interpreter with cuda.core, whose views of numpy arrays are made in process.
func (l *lab) prepareCUDA(ctx context.Context) error {
	if l.opts.cuda == "" {
		l.plan.LeaveOut(bench.StridedView, "there is no interpreter with cuda.core")
		return nil
	}
	w, err := bench.StartWays(ctx, l.opts.cuda, l.dir, l.opts.program)
	if err != nil {
		return err
	}
	l.ends = append(l.ends, w.Close)
	l.plan.AddWorker(w, bench.StridedView, "numpy", bench.InProcess)
	return nil
}
