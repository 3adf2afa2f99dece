package main

import (
	"context"
	_ "embed" // the Python programs
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

//go:embed arrays.py
var arraysScript string

//go:embed peers.py
var peersScript string

const oursName = "ndbridge"

// sample is one measurement: until there is an array in this address space, and until every element
// of it was read once.
type sample struct {
	View time.Duration `json:"view"`
	Read time.Duration `json:"read"`
}

// way is one way to hand an array over.
type way struct {
	name   string
	sample func(ctx context.Context, bytes int, read bool) (sample, error)
}

func measure(ctx context.Context, opts options, out io.Writer) (_ *report, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	session, end, err := start(ctx, opts, dir)
	if err != nil {
		return nil, err
	}
	defer end()
	peers, err := startPeers(ctx, opts.python, dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := peers.close(); err == nil {
			err = closeErr
		}
	}()
	ours := way{oursName, func(ctx context.Context, bytes int, all bool) (sample, error) {
		return look(ctx, session, bytes, all)
	}}
	ways := []way{
		peers.way("shared_memory"), peers.way("shared_memory_copy"), peers.way("pickle"), {"grpc", peers.stream},
	}
	r, err := newReport(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, size := range opts.sizes {
		fmt.Fprintf(out, "measuring %s\n", bytesText(size.bytes))
		if err := peers.prepare(size.bytes); err != nil {
			return nil, err
		}
		if err := r.interleave(ctx, size, ours, ways); err != nil {
			return nil, err
		}
	}
	if r.RoundTrip, err = roundTrips(ctx, session, opts.sizes[0].rounds*opts.sizes[0].views); err != nil {
		return nil, err
	}
	r.Allocations, err = allocations(ctx, session, opts.sizes[0])
	r.compare()
	return r, err
}

// start runs the program whose arrays are looked at.
func start(ctx context.Context, opts options, dir string) (*hostplugin.Session, func(), error) {
	script := filepath.Join(dir, "arrays.py")
	if err := os.WriteFile(script, []byte(arraysScript), 0o600); err != nil {
		return nil, nil, err
	}
	program := hostplugin.Program{Name: "arrays", Python: opts.python, Script: script}
	for _, size := range opts.sizes {
		program.Args = append(program.Args, strconv.Itoa(size.bytes))
	}
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{program}},
		hostplugin.WithLibDir(opts.lib), hostplugin.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, err
	}
	session, err := host.Start(ctx, "arrays")
	if err == nil {
		err = session.Wait(ctx) // until all arrays are there
	}
	if err != nil {
		host.Close()
		return nil, nil, err
	}
	return session, func() { host.Close() }, nil
}

// interleave measures all ways of one size in turns, so that what else the machine does meets all.
func (r *report) interleave(ctx context.Context, size size, ours way, peers []way) error {
	samples := map[string][]sample{}
	for range size.rounds {
		for i := range size.views {
			s, err := ours.sample(ctx, size.bytes, i == 0)
			if err != nil {
				return err
			}
			samples[ours.name] = append(samples[ours.name], s)
		}
		for _, w := range peers {
			s, err := w.sample(ctx, size.bytes, true)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			samples[w.name] = append(samples[w.name], s)
		}
	}
	for _, w := range append([]way{ours}, peers...) {
		r.add(size.bytes, w.name, samples[w.name])
	}
	return nil
}

// look is one view of ours, read if all is true: reading 1 GiB for each of a thousand views would tell
// nothing new.
func look(ctx context.Context, session *hostplugin.Session, bytes int, all bool) (sample, error) {
	start := time.Now()
	view, err := session.View(ctx, arrayName(bytes))
	if err != nil {
		return sample{}, err
	}
	s := sample{View: time.Since(start)}
	if all {
		err = read(view)
		s.Read = time.Since(start)
	}
	return s, errors.Join(err, view.Close())
}

func arrayName(bytes int) string { return "a" + strconv.Itoa(bytes) }

// read adds all elements up and compares with what they must sum to.
func read(view *core.View) error {
	data, err := core.Slice[float64](view)
	if err != nil {
		return err
	}
	return checkSum(sum(data), len(data))
}

// sum adds in four chains: one alone waits for the adder rather than for memory.
func sum(data []float64) float64 {
	var a, b, c, d float64
	for ; len(data) >= 4; data = data[4:] {
		a += data[0]
		b += data[1]
		c += data[2]
		d += data[3]
	}
	for _, x := range data {
		a += x
	}
	return a + b + c + d
}

// checkSum holds that n elements counted from 0 were seen; sums this large are not exact.
func checkSum(got float64, n int) error {
	want := float64(n) * float64(n-1) / 2
	if diff := got - want; diff > want*1e-9 || diff < -want*1e-9 {
		return fmt.Errorf("the elements sum to %v, want %v", got, want)
	}
	return nil
}

// roundTrips measures the control path alone: a call that does nothing.
func roundTrips(ctx context.Context, session *hostplugin.Session, n int) (quantiles, error) {
	var took []time.Duration
	for range n {
		start := time.Now()
		if _, err := session.Info(ctx); err != nil {
			return quantiles{}, err
		}
		took = append(took, time.Since(start))
	}
	return quantilesOf(took), nil
}

// allocations counts what one view costs the host's heap, taken and closed, with all that happens in
// the connection's own goroutines.
func allocations(ctx context.Context, session *hostplugin.Session, size size) (perView, error) {
	n := size.rounds * size.views
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		view, err := session.View(ctx, arrayName(size.bytes))
		if err != nil {
			return perView{}, err
		}
		if err := view.Close(); err != nil {
			return perView{}, err
		}
	}
	runtime.ReadMemStats(&after)
	return perView{
		Count: float64(after.Mallocs-before.Mallocs) / float64(n),
		Bytes: float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}

// quantiles of durations, in nanoseconds.
type quantiles struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	N   int           `json:"n"`
}

func quantilesOf(durations []time.Duration) quantiles {
	sorted := slices.Sorted(slices.Values(durations))
	at := func(q float64) time.Duration { return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)] }
	return quantiles{P50: at(0.50), P99: at(0.99), N: len(sorted)}
}
