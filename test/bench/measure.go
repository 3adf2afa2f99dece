package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

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
	mailbox  bench.Caller   // of a bare mailbox with that default
	cpus     *placement     // nil: there is one CPU

	mu   sync.Mutex
	ends []func() error // of all that was started
}

func measure(ctx context.Context, opts options, out io.Writer) (_ *report, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// Arrays on a GPU would be copied to this host, which has no CUDA: a GiB each time.
	if err := os.Setenv("JAX_PLATFORMS", "cpu"); err != nil {
		return nil, err
	}
	if err := bench.WriteScripts(dir); err != nil {
		return nil, err
	}
	l := &lab{opts: opts, out: out, dir: dir, report: &report{}, plan: opts.plan}
	defer func() { err = errors.Join(err, l.close()) }()
	lib := filepath.Join(opts.lib, "libndbridge-heap.so")
	if _, err := os.Stat(lib); err != nil { // the loader would only warn, and nothing would be compared
		return nil, err
	}
	if l.report.Machine, err = machineOf(ctx, opts.python); err != nil {
		return nil, err
	}
	for _, p := range allParts {
		if opts.only != "" && opts.only != p.name || p.heap && len(opts.heapSizes) == 0 {
			continue
		}
		if err := p.measure(l, ctx, lib); err != nil {
			return nil, err
		}
	}
	l.report.Goals = goals(l.report, &l.plan)
	return l.report, nil
}

// machineOf is this machine, with what an interpreter has.
func machineOf(ctx context.Context, python string) (m bench.Machine, err error) {
	const script = `
import importlib.metadata, json, platform, sys
print(json.dumps({
    "Interpreter": f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})",
    "Versions": {name: importlib.metadata.version(name) for name in sys.argv[1:]},
}))`
	c := exec.CommandContext(ctx, python, append([]string{"-c", script}, frameworks()...)...)
	c.Stderr = os.Stderr
	var has struct {
		Interpreter string
		Versions    map[string]string
	}
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", python, err)
	}
	return bench.NewMachine(has.Interpreter, has.Versions), nil
}

// allParts is what can be measured alone, in order.
var allParts = []struct {
	name    string
	heap    bool // it is about the shared heap
	measure func(l *lab, ctx context.Context, lib string) error
}{
	{"ways", false, func(l *lab, ctx context.Context, _ string) error { return l.ways(ctx) }},
	{"calls", false, func(l *lab, ctx context.Context, _ string) (err error) {
		l.say("%d callers of functions at full rate for %v, while programs are killed", callHammerers, l.opts.hammer)
		l.report.CallHammer, err = hammerCalls(ctx, l.opts, l.dir)
		return err
	}},
	{"heap", true, func(l *lab, ctx context.Context, lib string) (err error) {
		l.report.Heap, err = measureHeap(ctx, l.opts, lib, l.out)
		return err
	}},
	{"memory", true, func(l *lab, ctx context.Context, lib string) (err error) {
		l.report.Memory, err = measureMemory(ctx, l.opts, lib, l.out)
		return err
	}},
	{"forks", true, func(l *lab, ctx context.Context, lib string) (err error) {
		l.report.Forks, err = measureForks(ctx, l.opts, lib, l.out)
		return err
	}},
	{"epochs", true, func(l *lab, ctx context.Context, lib string) (err error) {
		l.report.Epochs, err = measureEpochs(ctx, l.opts, lib, l.dir, l.out)
		return err
	}},
	{"attaching", true, func(l *lab, ctx context.Context, lib string) (err error) {
		l.report.Attaching, err = measureAttaching(ctx, l.opts, lib, l.out)
		return err
	}},
	{"training", true, func(l *lab, ctx context.Context, lib string) (err error) {
		if l.opts.ndbridge != "" {
			l.report.Training, err = measureTraining(ctx, l.opts, lib, l.dir, l.out)
		}
		return err
	}},
	{"shown", true, func(l *lab, ctx context.Context, lib string) (err error) {
		if l.opts.ndbridge != "" {
			l.report.Shown, err = measureShown(ctx, l.opts, lib, l.dir, l.out)
		}
		return err
	}},
}

func partNames() (names []string) {
	for _, p := range allParts {
		names = append(names, p.name)
	}
	return names
}

// ways measures all ways to hand over an array.
func (l *lab) ways(ctx context.Context) (err error) {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	l.report.LeftOut = l.plan.LeftOut
	l.say("measuring all ways, in %d rounds", l.opts.plan.Rounds)
	if l.report.Rows, err = l.plan.Run(ctx); err != nil {
		return err
	}
	l.say("8 callers at full rate for %v", l.opts.hammer)
	if l.report.Hammer, err = hammer(ctx, l.spinning, l.opts); err != nil {
		return err
	}
	return l.close()
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.out, format+"\n", args...) }

func (l *lab) atEnd(end func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end)
}

func (l *lab) close() error {
	var errs []error
	for _, end := range slices.Backward(l.ends) {
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
		l.asleep, l.patient, l.byGRPC, l.python, l.grpcBytes, l.http, l.ray, l.flight, l.cuda,
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
		l.addWorkerCalls(w)
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
		l.addPeer(grpcCall, bench.Copied, p.last)
		return nil
	}, nil
}

// flight starts the client of Arrow Flight, which has a server in Python.
func (l *lab) flight(ctx context.Context) (func() error, error) {
	if l.opts.flight == "" || l.opts.more == "" {
		return l.without(arrowFlight, "no client was built, or there is no interpreter with pyarrow"), nil
	}
	socket := filepath.Join(l.dir, "flight")
	w, err := bench.StartWorker(exec.CommandContext(ctx, l.opts.flight, "flight", l.opts.more, socket), l.opts.program)
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
