package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// meter carries out "ndbridge bench".
type meter struct {
	env    *environ
	python string
	plugin string
	rounds int
	json   bool
}

func newBench(env *environ) *cobra.Command {
	m := &meter{env: env}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how long a view takes with an interpreter's own frameworks",
		Long: `bench runs a program with arrays of numpy, torch and jax, as far as the interpreter has them, and measures
how long it takes until a host has a view of one, in turns with two other ways: the framework's own export
within one process (__dlpack__), and pickle over a pipe to another process. Other programs that run
meanwhile make the figures worse.

With --json it prints one object a line for each way, framework and size: way, framework, bytes, p50_ns,
p99_ns, p999_ns, n, and of views host_allocations.`,
		Example: `  ndbridge bench
  ndbridge bench --python .venv/bin/python
  ndbridge bench --json | jq 'select(.way == "ndbridge")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("bench takes no arguments")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              env.command(func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context()) }),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&m.python, "python", "python3", "the `interpreter`, a path or a name on PATH")
	f.StringVar(&m.plugin, "plugin", "", "the plugin: a shipped one by name, or a `path` (default all)")
	f.IntVar(&m.rounds, "rounds", 20, "how often all is measured, in turns: the more, the surer")
	f.BoolVar(&m.json, "json", false, "print one JSON object a line")
	return cmd
}

func (m *meter) run(ctx context.Context) (err error) {
	if m.rounds < 1 {
		return usagef("--rounds must be positive")
	}
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m.env.stderr.Progress("looking for frameworks")
	worker, err := bench.StartWays(ctx, m.python, dir, m.env.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	frameworks := slices.Sorted(maps.Keys(worker.Versions))
	if len(frameworks) == 0 {
		return fmt.Errorf("%s has none of the frameworks that are measured: %s", m.python,
			strings.Join(slices.Sorted(maps.Values(worker.Missing)), "; "))
	}
	plan := &bench.Plan{Sizes: []int{4 * bench.KiB, bench.MiB, 64 * bench.MiB}, Rounds: m.rounds, Turn: 100}
	m.env.stderr.Progress("starting a program with %s", strings.Join(frameworks, ", "))
	program, err := bench.Start(ctx, dir, hostplugin.Program{Python: m.python, Plugin: m.plugin},
		bench.Arrays{Frameworks: frameworks, Sizes: plan.Sizes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	info, err := program.Info(ctx)
	if err != nil {
		return err
	}
	for _, framework := range frameworks {
		if err := plan.AddViews(program, bench.Ours, framework, plan.Turn); err != nil {
			return err
		}
		plan.AddWorker(worker, bench.OwnExport, framework, bench.InProcess)
		plan.AddWorker(worker, bench.Pickle, framework, bench.Copied)
	}
	m.env.stderr.Progress("measuring")
	rows, err := plan.Run(ctx)
	m.env.stderr.Stop()
	if err != nil {
		return err
	}
	if m.json {
		return m.objects(rows)
	}
	return m.print(bench.NewMachine(info.Interpreter, worker.Versions), plan, rows)
}

func (m *meter) objects(rows bench.Rows) error {
	for _, row := range rows {
		if err := writeJSON(m.env.stdout, row); err != nil {
			return err
		}
	}
	return nil
}

// print puts the ways beside each other.
func (m *meter) print(machine bench.Machine, plan *bench.Plan, rows bench.Rows) error {
	w := tabwriter.NewWriter(m.env.stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // Flush has the error
	line("%s\n%d x %s, Linux %s\n\n", machine.Interpreter, machine.CPUs, machine.Model, machine.Kernel)
	line("\t\tview p50\tp99\town export p50\tp99\tpickle over a pipe p50\tp99\tview faster by\t\n")
	for _, framework := range slices.Sorted(maps.Keys(machine.Frameworks)) {
		name := framework + " " + machine.Frameworks[framework]
		for _, size := range plan.Sizes {
			line("%s\t%s\t", name, bench.SizeText(size))
			name = ""
			of := func(way string) bench.Row {
				row, _ := rows.Find(bench.Key{Way: way, Framework: framework, Bytes: size})
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
	line("\nUntil there is an array: in the host (view, which makes no copy), in the framework's own process (own\n" +
		"export), in another Python process (pickle).\n")
	for _, left := range plan.LeftOut {
		line("left out: %s: %s\n", left.Way, left.Why)
	}
	return w.Flush()
}

// timesText writes a ratio with two digits, or as a whole number.
func timesText(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.2gx", ratio)
	}
	return fmt.Sprintf("%.0fx", ratio)
}
