package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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

	mu   sync.Mutex
	ends []func() error // of all that was started
}

func measure(ctx context.Context, opts options, out io.Writer) (_ *report, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := bench.WriteScripts(dir); err != nil {
		return nil, err
	}
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
		lib := filepath.Join(opts.lib, "libndbridge-heap.so")
		if _, err := os.Stat(lib); err != nil { // the loader would only warn, and nothing would be compared
			return nil, err
		}
		if l.report.Heap, err = measureHeap(ctx, opts, lib, out); err != nil {
			return nil, err
		}
		if l.report.Memory, err = measureMemory(ctx, opts, lib, out); err != nil {
			return nil, err
		}
	}
	l.report.Goals = goals(l.report, &l.plan)
	return l.report, nil
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.out, format+"\n", args...) }

func (l *lab) atEnd(end func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end)
}

func (l *lab) close() error {
	var errs []error
	for _, end := range l.ends {
		errs = append(errs, end())
	}
	l.ends = nil
	return errors.Join(errs...)
}

// prepare starts all that is measured. The first program is alone when what it costs while nothing happens
// is measured; all else comes up together, and is then added in a fixed order.
func (l *lab) prepare(ctx context.Context) error {
	if err := l.addLimits(ctx); err != nil {
		return err
	}
	if err := l.first(ctx); err != nil {
		return err
	}
	l.say("starting all else")
	starts := []func(context.Context) (add func() error, err error){
		l.asleep, l.byGRPC, l.python, l.grpcBytes, l.flight, l.cuda,
	}
	adds, errs := make([]func() error, len(starts)), make([]error, len(starts))
	var all sync.WaitGroup
	for i, start := range starts {
		all.Go(func() { adds[i], errs[i] = start(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, add := range adds {
		if err := add(); err != nil {
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

func (l *lab) addLimits(ctx context.Context) error {
	for _, way := range []struct{ name, mode string }{
		{bareRing, handoffSpin.String()}, {bareAsleep, "0s"}, {bareFutex, viaFutex},
	} {
		caller, end, err := limit(ctx, way.mode)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		l.atEnd(end)
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

// start starts a program of ours.
func (l *lab) start(ctx context.Context, p hostplugin.Program) (*bench.Program, error) {
	p.Python = l.opts.python
	program, err := bench.Start(ctx, l.dir, p, bench.Arrays{Frameworks: frameworks(), Sizes: l.plan.Sizes},
		hostplugin.WithLibDir(l.opts.lib), hostplugin.WithOutput(l.opts.program, l.opts.program))
	if err == nil {
		l.atEnd(program.Close)
	}
	return program, err
}

// first starts the program that spins, and measures what is measured of one program only.
func (l *lab) first(ctx context.Context) (err error) {
	l.say("starting a program")
	if l.spinning, err = l.start(ctx, hostplugin.Program{HandoffSpin: new(handoffSpin)}); err != nil {
		return err
	}
	info, err := l.spinning.Info(ctx)
	if err != nil {
		return err
	}
	versions := map[string]string{}
	for _, f := range info.Frameworks {
		versions[f.Name] = f.Version
	}
	l.report.Machine = bench.NewMachine(info.Interpreter, versions)
	l.say("measuring what a session costs while nothing happens, for %v", l.opts.idle)
	if l.report.Idle, err = measureIdle(ctx, l.spinning, l.opts); err != nil {
		return err
	}
	if err := l.addPublished(l.spinning); err != nil {
		return err
	}
	return l.addViews(l.spinning, ours, l.plan.Turn)
}

func (l *lab) asleep(ctx context.Context) (func() error, error) {
	p, err := l.start(ctx, hostplugin.Program{HandoffSpin: new(time.Duration(0))})
	return func() error { return l.addViews(p, oursAsleep, l.plan.Turn/2) }, err
}

func (l *lab) byGRPC(ctx context.Context) (func() error, error) {
	p, err := l.start(ctx, hostplugin.Program{Handoff: new(false)})
	return func() error { return l.addViews(p, oursGRPC, l.plan.Turn/10) }, err
}

// addViews has views of a program's arrays measured: of all sizes, and of one by several callers.
func (l *lab) addViews(p *bench.Program, way string, calls int) error {
	for _, framework := range frameworks() {
		if err := l.plan.AddViews(p, way, framework, calls); err != nil {
			return err
		}
		for _, n := range []int{2, 8} {
			k := bench.Key{Way: way, Framework: framework, Bytes: l.plan.Shared(), Callers: n}
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
	size := l.plan.Shared()
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

func (l *lab) python(ctx context.Context) (func() error, error) {
	w, err := bench.StartWays(ctx, l.opts.python, l.dir, l.opts.program)
	if err != nil {
		return nil, err
	}
	l.atEnd(w.Close)
	return func() error {
		for _, framework := range frameworks() {
			l.plan.AddWorker(w, bench.OwnExport, framework, bench.InProcess)
		}
		l.plan.AddWorker(w, bench.TorchQueue, "torch", bench.AnySize)
		l.plan.AddWorker(w, bench.TorchSimpleQueue, "torch", bench.AnySize)
		l.plan.AddWorker(w, bench.SharedMemory, "numpy", bench.AnySize)
		l.plan.AddWorker(w, bench.SharedMemoryCopy, "numpy", bench.Copied)
		l.plan.AddWorker(w, bench.Pickle, "numpy", bench.Copied)
		return nil
	}, nil
}

// The ways of which a process of another kind has the array.
const (
	grpcBytes   = "gRPC bytes"
	arrowFlight = "Arrow Flight"
)

func (l *lab) grpcBytes(ctx context.Context) (func() error, error) {
	p, err := startGRPC(ctx, l.opts, l.dir)
	if err != nil {
		return nil, err
	}
	l.atEnd(p.close)
	return func() error {
		for _, size := range l.plan.Sizes {
			calls, every := bench.Copied(&l.plan, size)
			s := l.plan.Add(bench.Key{Way: grpcBytes, Framework: "numpy", Bytes: size}, calls, p.caller(size))
			s.Turn, s.Every = p.turn(size, l.plan.Sizes[0], s.Turn), every
		}
		return nil
	}, nil
}

// flight starts the client of Arrow Flight, which has a server in Python.
func (l *lab) flight(ctx context.Context) (func() error, error) {
	if l.opts.flight == "" || l.opts.more == "" {
		return l.without(arrowFlight, "no client was built, or there is no interpreter with pyarrow"), nil
	}
	socket := filepath.Join(l.dir, "flight")
	w, err := bench.StartWorker(exec.CommandContext(ctx, l.opts.flight, l.opts.more, socket), l.opts.program)
	if err != nil {
		return l.without(arrowFlight, err.Error()), nil
	}
	l.atEnd(w.Close)
	return func() error { l.plan.AddWorker(w, arrowFlight, "numpy", bench.Copied); return nil }, nil
}

// cuda starts an interpreter with cuda.core, whose views of numpy arrays are made in process.
func (l *lab) cuda(ctx context.Context) (func() error, error) {
	if l.opts.cuda == "" {
		return l.without(bench.StridedView, "there is no interpreter with cuda.core"), nil
	}
	w, err := bench.StartWays(ctx, l.opts.cuda, l.dir, l.opts.program)
	if err != nil {
		return l.without(bench.StridedView, err.Error()), nil
	}
	l.atEnd(w.Close)
	return func() error { l.plan.AddWorker(w, bench.StridedView, "numpy", bench.InProcess); return nil }, nil
}

// without leaves a way out.
func (l *lab) without(way, why string) func() error {
	return func() error { l.plan.LeaveOut(way, why); return nil }
}
