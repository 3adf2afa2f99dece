package main

import (
	"bufio"
	"context"
	_ "embed" // the Python program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed heap.py
var heapScript string

// heapRow compares a framework's own speed with and without the shared heap.
type heapRow struct {
	Framework string          `json:"framework"`
	Work      string          `json:"work"`
	Bytes     int             `json:"bytes"` // of each array
	On        bench.Quantiles `json:"on"`
	Off       bench.Quantiles `json:"off"`
	Ratio     float64         `json:"ratio"` // of the medians, on / off
}

// heapSize says how often work on arrays of a size is measured: rounds, on and off in turns, of
// calls each.
type heapSize struct{ bytes, rounds, calls int }

func fullHeapSizes() []heapSize {
	return []heapSize{{64 * bench.KiB, 15, 200}, {bench.MiB, 15, 50}, {64 * bench.MiB, 9, 2}, {512 * bench.MiB, 5, 1}}
}

func briefHeapSizes() []heapSize {
	return []heapSize{{64 * bench.KiB, 3, 10}, {bench.MiB, 3, 5}}
}

// measureHeap lets each framework do steady work (arrays made, computed with, dropped) in two
// interpreters that differ in the heap alone.
func measureHeap(ctx context.Context, opts options, lib string, out io.Writer) ([]heapRow, error) {
	var rows []heapRow
	for _, framework := range []string{"numpy", "torch", "jax"} {
		fmt.Fprintf(out, "measuring %s with the shared heap and without\n", framework)
		more, err := compareHeaps(ctx, opts, lib, framework)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", framework, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func compareHeaps(ctx context.Context, opts options, lib, framework string) (_ []heapRow, err error) {
	var workers [2]*heapWorker // on, off
	for i, preload := range []string{lib, ""} {
		worker, err := startHeapWorker(ctx, opts.python, framework, preload)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, worker.close()) }()
		workers[i] = worker
	}
	var rows []heapRow
	for _, work := range workers[0].work {
		for _, size := range opts.heapSizes {
			var took [2][]time.Duration
			for range size.rounds {
				for i, worker := range workers {
					more, err := worker.measure(work, size)
					if err != nil {
						return nil, err
					}
					took[i] = append(took[i], more...)
				}
			}
			row := heapRow{Framework: framework, Work: work, Bytes: size.bytes, On: bench.QuantilesOf(took[0]), Off: bench.QuantilesOf(took[1])}
			row.Ratio = float64(row.On.P50) / float64(row.Off.P50)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// heapWorker is an interpreter that runs heap.py.
type heapWorker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	work    []string // what it can do
}

func startHeapWorker(ctx context.Context, python, framework, preload string) (*heapWorker, error) {
	w := &heapWorker{process: exec.CommandContext(ctx, python, "-c", heapScript, framework)}
	w.process.Stderr = os.Stderr
	w.process.Env = append(os.Environ(), "LD_PRELOAD="+preload)
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if w.in, err = w.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	if err := w.read(&w.work); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *heapWorker) measure(work string, size heapSize) (took []time.Duration, err error) {
	if _, err := fmt.Fprintln(w.in, work, size.bytes, size.calls); err != nil {
		return nil, err
	}
	return took, w.read(&took)
}

func (w *heapWorker) read(value any) error {
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, value)
}

func (w *heapWorker) close() error { return errors.Join(w.in.Close(), w.process.Wait()) }

func printHeap(out io.Writer, rows []heapRow) {
	fmt.Fprint(out, "\nThe frameworks' own speed, steady work, medians with the shared heap on and off.\n\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "framework\twork\tsize\ton\toff\ton / off\tn\t")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.2f\t%d\t\n", row.Framework, row.Work, bench.SizeText(row.Bytes),
			bench.TimeText(row.On.P50), bench.TimeText(row.Off.P50), row.Ratio, row.On.N)
	}
	_ = table.Flush() // it writes where all else was written
}
