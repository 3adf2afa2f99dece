package main

import (
	"context"
	"errors"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// Ours. Where nothing else is said, a view is refreshed.
const (
	ours          = bench.Ours
	oursAsleep    = "ndbridge, asleep"
	oursApart     = "ndbridge, asleep" + onTwoCPUs
	oursGRPC      = "ndbridge, by gRPC"
	oursSilence   = "ndbridge, after silence"
	group         = "ndbridge, group of 300"
	pulledBusy    = "ndbridge, Python busy"
	groupBusy     = "ndbridge, group of 8, Python busy"
	newViews      = "ndbridge, new view"
	published     = "ndbridge, new view, published"
	publishedBusy = "ndbridge, new view, published, Python busy"

	parameters = 300
	busyNames  = 8

	// silence is how long nobody asks for anything before a call.
	silence = 100 * time.Millisecond
)

// start starts a program of ours.
func (l *lab) start(ctx context.Context, p hostplugin.Program, arrays bench.Arrays) (*bench.Program, error) {
	p.Python, p.Stdout, p.Stderr = l.opts.python, l.opts.program, l.opts.program
	program, err := bench.Start(ctx, l.dir, p, arrays, l.opts.lib)
	if err == nil {
		l.atEnd(program.Close)
	}
	return program, err
}

// arrays are those of most programs.
func (l *lab) arrays() bench.Arrays {
	return bench.Arrays{Frameworks: frameworks(), Sizes: l.plan.Sizes}
}

// first starts the program that spins, and measures what is measured of one program only.
func (l *lab) first(ctx context.Context) (err error) {
	l.say("starting a program")
	arrays := l.arrays()
	arrays.Parameters = parameters
	if l.spinning, err = l.start(ctx, hostplugin.Program{Handoff: hostplugin.HandoffOptions{Spin: handoffSpin}}, arrays); err != nil {
		return err
	}
	info, err := l.spinning.Info(ctx)
	if err != nil {
		return err
	}
	for _, add := range []func(*bench.Program) error{l.addGroups, l.addSilence, l.addPublished, l.addBusy, l.addPublishing, l.addLatest, l.addCalls} {
		if err := add(l.spinning); err != nil {
			return err
		}
	}
	if err := l.addViews(l.spinning, ours, l.plan.Turn); err != nil {
		return err
	}
	l.say("measuring what a session costs while views stand and nothing happens, for %v", l.opts.idle)
	l.report.Idle, err = measureIdle(ctx, info.PID, l.plan.Subjects, l.opts.idle)
	return err
}

// asleep starts the program whose sides sleep at once.
func (l *lab) asleep(ctx context.Context) (func() error, error) {
	p, err := l.start(ctx, hostplugin.Program{Handoff: hostplugin.HandoffOptions{Spin: -1}}, l.arrays())
	if err != nil {
		return nil, err
	}
	info, err := p.Info(ctx)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := l.addViews(p, oursAsleep, l.plan.Turn/2)
		if err != nil || l.cpus == nil {
			return err
		}
		caller, err := p.Caller(bench.Name("numpy", l.plan.Shared()))
		if err != nil {
			return err
		}
		l.addApart(bench.Key{Way: oursApart, Framework: "numpy", Bytes: l.plan.Shared()}, l.plan.Turn/2, caller, info.PID)
		return errors.Join(l.addNext(p, nextAsleep, info.PID), l.addCallApart(p, info.PID))
	}, err
}

func (l *lab) byGRPC(ctx context.Context) (func() error, error) {
	p, err := l.start(ctx, hostplugin.Program{Handoff: hostplugin.HandoffOptions{Off: true}}, l.arrays())
	return func() error { return l.addViews(p, oursGRPC, l.plan.Turn/10) }, err
}

// patient starts the program whose sides look for each other for longer than a version takes to come.
func (l *lab) patient(ctx context.Context) (func() error, error) {
	const longest = 10 * time.Millisecond
	p, err := l.start(ctx, hostplugin.Program{Handoff: hostplugin.HandoffOptions{Spin: longest}}, bench.Arrays{Frameworks: []string{"numpy"}, Sizes: l.plan.Sizes[:1]})
	if err != nil || l.cpus == nil {
		return func() error { return nil }, err
	}
	info, err := p.Info(ctx)
	return func() error { return l.addNext(p, nextSpinning, info.PID) }, err
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

// addGroups has groups of a model's parameters refreshed.
func (l *lab) addGroups(p *bench.Program) error {
	for _, framework := range []string{"numpy", "torch"} {
		caller, err := p.GroupCaller(bench.ParameterNames(framework, parameters))
		if err != nil {
			return err
		}
		l.plan.Add(bench.Key{Way: group, Framework: framework}, max(l.plan.Turn/10, 1), caller).Count = caller
	}
	return nil
}

// addSilence has the first call after a silence measured, beside that of the bare mailbox.
func (l *lab) addSilence(p *bench.Program) error {
	caller, err := p.Caller(bench.Name("numpy", l.plan.Shared()))
	if err != nil {
		return err
	}
	for _, way := range []struct {
		bench.Key
		caller bench.Caller
	}{
		{bench.Key{Way: oursSilence, Framework: "numpy", Bytes: l.plan.Shared()}, caller}, {bench.Key{Way: bareSilence}, l.mailbox},
	} {
		call := bench.Calls(0, 1, way.caller)
		l.plan.Add(way.Key, 1).Turn = func(ctx context.Context) ([]time.Duration, error) {
			if err := pause(ctx, silence); err != nil {
				return nil, err
			}
			return call(ctx)
		}
	}
	return nil
}

// addPublished has new views taken, of arrays that are published and of others.
func (l *lab) addPublished(p *bench.Program) error {
	for _, framework := range frameworks() {
		for _, size := range []int{l.plan.Sizes[0], l.plan.Sizes[len(l.plan.Sizes)-1]} {
			other, err1 := p.NewViews(bench.Name(framework, size))
			offered, err2 := p.NewViews(bench.PublishedName(framework, size))
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			l.plan.Add(bench.Key{Way: newViews, Framework: framework, Bytes: size}, l.plan.Turn/2, other)
			l.plan.Add(bench.Key{Way: published, Framework: framework, Bytes: size}, l.plan.Turn/2, offered)
		}
	}
	return nil
}

// addBusy has measured what a program answers that computes in Python: new views of a published array, and
// refreshes of one that it has not published, and of several.
func (l *lab) addBusy(p *bench.Program) error {
	size := l.plan.Shared()
	offered, err1 := p.NewViews(bench.PublishedName("numpy", size))
	one, err2 := p.Caller(bench.Name("numpy", size))
	several, err3 := p.GroupCaller(bench.ParameterNames("numpy", busyNames))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	// The program computes again before the next call, which would find Python's lock free until it has got a CPU.
	check := several.Tidy
	one.Tidy = func() error { return pause(context.Background(), interval) }
	several.Tidy = func() error { return errors.Join(check(), one.Tidy()) }
	for _, way := range []struct {
		bench.Key
		caller bench.Caller
		calls  int
	}{
		{bench.Key{Way: publishedBusy, Framework: "numpy", Bytes: size}, offered, l.plan.Turn / 4},
		{bench.Key{Way: pulledBusy, Framework: "numpy", Bytes: size}, one, max(l.plan.Turn/50, 2)},
		{bench.Key{Way: groupBusy, Framework: "numpy"}, several, max(l.plan.Turn/50, 2)},
	} {
		s := l.plan.Add(way.Key, way.calls, way.caller)
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
