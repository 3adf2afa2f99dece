package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// What the command says of itself.
const (
	benchHelp = `bench runs a program with arrays of numpy, torch and jax, as far as the interpreter has them, and measures
how long it takes a host to refresh a view of one and read its last element, in turns with two other ways: the
framework's own export within one process (__dlpack__), and pickle over a pipe to another process. Other
programs that run meanwhile make the figures worse.

With --json it prints one object a line for each way, framework and size: way, framework, bytes, p50_ns,
p99_ns, p999_ns, n, and of refreshes host_allocations.`
	benchExamples = `  ndbridge bench
  ndbridge bench --python .venv/bin/python
  ndbridge bench --json | jq 'select(.way == "ndbridge")'`
)

// meter measures refreshed views with the frameworks of an interpreter: what, and how.
type meter struct {
	Python   string // a path, or a name on PATH
	Plugin   string // a shipped plugin by name, or a path; "" means "all"
	Rounds   int    // how often all is measured, in turns
	Progress func(what string)
	Stderr   io.Writer // for what Python says
}

// measured is what came of it.
type measured struct {
	Machine bench.Machine
	Sizes   []int
	Rows    bench.Rows
	LeftOut []bench.LeftOut
}

// measure takes some seconds.
func (m meter) measure(ctx context.Context) (_ *measured, err error) {
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := bench.WriteScripts(dir); err != nil {
		return nil, err
	}
	m.Progress("looking for frameworks")
	worker, err := bench.StartWays(ctx, m.Python, dir, m.Stderr)
	if err != nil {
		return nil, m.cannotStart(ctx, err)
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	frameworks := slices.Sorted(maps.Keys(worker.Versions))
	if len(frameworks) == 0 {
		return nil, fmt.Errorf("%s has none of the frameworks that are measured: %s", m.Python,
			strings.Join(slices.Sorted(maps.Values(worker.Missing)), "; "))
	}
	plan := &bench.Plan{Sizes: []int{4 * bench.KiB, bench.MiB, 64 * bench.MiB}, Rounds: m.Rounds, Turn: 100}
	m.Progress("starting a program with " + strings.Join(frameworks, ", "))
	program, err := bench.Start(ctx, dir, hostplugin.Program{Python: m.Python, Plugin: m.Plugin},
		bench.Arrays{Frameworks: frameworks, Sizes: plan.Sizes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	info, err := program.Info(ctx)
	if err != nil {
		return nil, err
	}
	for _, framework := range frameworks {
		if err := plan.AddViews(program, bench.Ours, framework, plan.Turn); err != nil {
			return nil, err
		}
		plan.AddWorker(worker, bench.OwnExport, framework, bench.InProcess)
		plan.AddWorker(worker, bench.Pickle, framework, bench.Copied)
	}
	m.Progress("measuring")
	rows, err := plan.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &measured{bench.NewMachine(info.Interpreter, worker.Versions), plan.Sizes, rows, plan.LeftOut}, nil
}

// cannotStart gives the host's words for what is wrong with an interpreter, if it has any.
func (m meter) cannotStart(ctx context.Context, err error) error {
	s, cause := hostplugin.Run(ctx, hostplugin.Program{Name: "bench", Python: m.Python, Plugin: m.Plugin, Module: "this"})
	if cause != nil {
		return cause
	}
	return errors.Join(err, s.Close())
}

// writeObjects writes a line of JSON for each way, framework and size.
func (r *measured) writeObjects(out io.Writer) error {
	lines := json.NewEncoder(out)
	for _, row := range r.Rows {
		if err := lines.Encode(row); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// writeTable puts the ways beside each other.
func (r *measured) writeTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // Flush has the error
	line("%s\n%d x %s, Linux %s\n\n", r.Machine.Interpreter, r.Machine.CPUs, r.Machine.Model, r.Machine.Kernel)
	line("\t\trefresh p50\tp99\town export p50\tp99\tpickle over a pipe p50\tp99\trefresh faster by\t\n")
	for _, framework := range slices.Sorted(maps.Keys(r.Machine.Frameworks)) {
		name := framework + " " + r.Machine.Frameworks[framework]
		for _, size := range r.Sizes {
			line("%s\t%s\t", name, bench.SizeText(size))
			name = ""
			of := func(way string) bench.Row {
				row, _ := r.Rows.Find(bench.Key{Way: way, Framework: framework, Bytes: size})
				if row.N == 0 {
					line("-\t-\t")
				} else {
					line("%s\t%s\t", bench.TimeText(row.P50), bench.TimeText(row.P99))
				}
				return row
			}
			ours := of(bench.Ours)
			of(bench.OwnExport)
			line("%s\t\n", timesText(float64(of(bench.Pickle).P50)/float64(ours.P50)))
		}
	}
	line("\nUntil the last element was read: in the host (refresh, which copies only arrays of less than 64 KiB), in\n" +
		"another Python process (pickle); or until there is an export in the framework's own process.\n")
	for _, left := range r.LeftOut {
		line("left out: %s: %s\n", left.Way, left.Why)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// timesText writes a ratio with two digits, or as a whole number.
func timesText(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.2gx", ratio)
	}
	return fmt.Sprintf("%.0fx", ratio)
}
