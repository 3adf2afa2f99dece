package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// Versions that the program publishes.
const (
	latest       = "ndbridge, Latest, nothing newer"
	nextAsleep   = "ndbridge, Next, asleep" + onTwoCPUs
	nextSpinning = "ndbridge, Next, spinning" + onTwoCPUs
	fromCall     = ", from the call of publish"
	fromReturn   = ", from the return of publish"

	publishTurns = "ndbridge.publish, two arrays in turn"

	// interval is between two versions: long enough for a host to sleep again.
	interval = time.Millisecond
)

// addLatest has looks measured of which none finds a newer version.
func (l *lab) addLatest(p *bench.Program) error {
	source, err := p.Source(bench.PublishedName("numpy", l.plan.Shared()))
	if err != nil {
		return err
	}
	var view *core.View
	caller := bench.Caller{Batch: 1000, Do: func(ctx context.Context) (err error) {
		view, _, err = source.Latest(ctx, view)
		return err
	}}
	k := bench.Key{Way: latest, Framework: "numpy", Bytes: l.plan.Shared()}
	l.plan.Add(k, max(l.plan.Turn/10, 1), caller).Count = caller
	return nil
}

// addPublishing has publications measured by the program itself.
func (l *lab) addPublishing(p *bench.Program) error {
	calls, size := l.plan.Turn/2, l.plan.Shared()
	for _, way := range []struct{ name, kind string }{
		{"ndbridge.publish, the same array", "same"},
		{publishTurns, "turns"},
		{"ndbridge.publish, a new array each time", "new"},
		{"ndbridge.publish, a dict of two arrays and a number", "dict"},
	} {
		l.plan.Add(bench.Key{Way: way.name, Framework: "numpy", Bytes: size}, calls).Turn = p.Publish(way.kind, size, calls, calls)
	}
	return nil
}

// addNext has measured how long it takes from a publication until the host, which waits for it, has the view. The
// two sides are on two CPUs: a program that wakes up where the host looks takes its CPU.
func (l *lab) addNext(p *bench.Program, way string, pid int) error {
	source, err := p.Source("versions")
	if err != nil {
		return err
	}
	f := &follower{program: p, source: source, clock: newClock(), count: max(l.plan.Turn/10, 2)}
	turn := l.apart(pid, f.turn)
	l.plan.Add(bench.Key{Way: way + fromCall, Framework: "numpy"}, 1).Turn = func(ctx context.Context) ([]time.Duration, error) {
		_, err := turn(ctx)
		return f.fromCall, err
	}
	// The same versions: it comes next in each round.
	l.plan.Add(bench.Key{Way: way + fromReturn, Framework: "numpy"}, 1).Turn = func(context.Context) ([]time.Duration, error) {
		return f.fromReturn, nil
	}
	return nil
}

// follower waits for the versions of one name.
type follower struct {
	program *bench.Program
	source  *hostplugin.Source
	clock   clock
	count   int // of the versions in a turn, after one that does not count
	view    *core.View
	version uint64

	fromCall, fromReturn []time.Duration // of the last turn
}

func (f *follower) turn(ctx context.Context) ([]time.Duration, error) {
	await, err := f.program.Begin("versions", f.count, interval.Seconds())
	if err != nil {
		return nil, err
	}
	seen := make([]int64, 1+f.count)
	for first := f.version + 1; f.version < first+uint64(f.count); {
		if f.view, err = f.source.Next(ctx, f.view); err != nil {
			return nil, err
		}
		now := f.clock.now()
		f.version = f.view.Version()
		i := f.version - first
		seen[i] = now
		if err := f.check(int64(i)); err != nil {
			return nil, err
		}
	}
	var began, ended []int64
	if err := await(&[2]*[]int64{&began, &ended}); err != nil {
		return nil, err
	}
	f.fromCall, f.fromReturn = f.fromCall[:0], f.fromReturn[:0]
	for i, at := range seen {
		if i > 0 && at != 0 { // not passed over
			f.fromCall = append(f.fromCall, time.Duration(at-began[i]))
			// A host that runs before publish has returned has waited for nothing.
			f.fromReturn = append(f.fromReturn, time.Duration(max(at-ended[i], 1)))
		}
	}
	return f.fromCall, nil
}

// check compares what the program writes into each array: the number of its version, until it takes the array
// again, two versions later.
func (f *follower) check(i int64) error {
	data, err := f.view.Bytes()
	if err != nil {
		return err
	}
	if got := int64(binary.LittleEndian.Uint64(data)); got < i || (got-i)%2 != 0 {
		return fmt.Errorf("version %d has the number %d, expected %d", f.version, got, i)
	}
	return nil
}

// clock reads CLOCK_MONOTONIC, as Python's perf_counter_ns does, without a system call.
type clock struct {
	start  time.Time
	offset int64
}

func newClock() clock {
	c, best := clock{}, time.Duration(math.MaxInt64)
	for range 100 {
		var now unix.Timespec
		start := time.Now()
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		if took := time.Since(start); err == nil && took < best {
			c, best = clock{start, now.Nano() - int64(took)/2}, took
		}
	}
	return c
}

func (c clock) now() int64 { return c.offset + int64(time.Since(c.start)) }
