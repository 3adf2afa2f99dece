package main

import (
	"context"
	_ "embed" // the Python program
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"text/tabwriter"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed memory.py
var memoryScript string

// memoryRow compares what a program's arrays take with and without the shared heap.
type memoryRow struct {
	Work  string `json:"work"`
	Bytes int    `json:"bytes"` // of the arrays that are held at the same time
	On    memory `json:"on"`
	Off   memory `json:"off"`
}

// memory is what of a process was in memory, in bytes: at most, and when its work was done.
type memory struct {
	Peak int `json:"peak"`
	Idle int `json:"idle"`
}

// measureMemory lets two interpreters that differ in the heap alone do the same work, each in a process of
// its own. Once is enough: the work is the same each time, down to the sizes.
func measureMemory(ctx context.Context, opts options, lib string, out io.Writer) (rows []memoryRow, err error) {
	fmt.Fprintln(out, "measuring numpy's memory with the shared heap and without")
	for _, work := range []string{"churn", "free", "resize"} {
		row := memoryRow{Work: work, Bytes: opts.heapMemory}
		if row.On, err = memoryOf(ctx, opts, work, lib); err != nil {
			return nil, err
		}
		if row.Off, err = memoryOf(ctx, opts, work, ""); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func memoryOf(ctx context.Context, opts options, work, preload string) (m memory, err error) {
	c := exec.CommandContext(ctx, opts.python, "-c", memoryScript, work, strconv.Itoa(opts.heapMemory/bench.MiB))
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload)
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", work, err)
	}
	return m, nil
}

func printMemory(out io.Writer, rows []memoryRow) {
	fmt.Fprint(out, "\nNumPy's memory in MiB with the shared heap on and off: at most, and when the work is done.\n\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "work\tsize\tpeak on\tpeak off\ton / off\tidle on\tidle off\ton / off\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.2f\t%d\t%d\t%.2f\t\n", r.Work, bench.SizeText(r.Bytes),
			r.On.Peak/bench.MiB, r.Off.Peak/bench.MiB, r.peakRatio(), r.On.Idle/bench.MiB, r.Off.Idle/bench.MiB, r.idleRatio())
	}
	_ = table.Flush() // it writes where all else was written
}

func (r memoryRow) peakRatio() float64 { return float64(r.On.Peak) / float64(r.Off.Peak) }
func (r memoryRow) idleRatio() float64 { return float64(r.On.Idle) / float64(r.Off.Idle) }

// memory holds a program's memory to little more than it would take without the heap.
func (j *judge) memory(rows []memoryRow) {
	for _, r := range rows {
		hold := func(when string, ratio float64, on, off int) {
			j.times(fmt.Sprintf("numpy's memory, %s of %s, %s", r.Work, bench.SizeText(r.Bytes), when), ratio, 1.25,
				"without the heap", fmt.Sprintf("%d / %d MiB", on/bench.MiB, off/bench.MiB))
		}
		hold("peak", r.peakRatio(), r.On.Peak, r.Off.Peak)
		hold("idle", r.idleRatio(), r.On.Idle, r.Off.Idle)
	}
}
