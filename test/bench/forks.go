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
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed forks.py
var forksScript string

// forkWork says how large the arrays are that live through forks, in bytes, and through how many.
type forkWork struct {
	written, writtenForks int // by four threads
	arrays, arraysForks   int // of which a hundredth is leased
}

// forked is what forks cost a program with the shared heap and without it.
type forked struct {
	Bytes   int     `json:"bytes"` // of the array that threads write to
	On      writing `json:"on"`
	Off     writing `json:"off"`
	Arrays  int     `json:"arrays"` // bytes of those of which a hundredth is leased
	ForkOn  forking `json:"fork_on"`
	ForkOff forking `json:"fork_off"`
}

// writing is what four threads met, which write to an array by C, NumPy, torch and readinto, beside forks after each of
// which it is promoted.
type writing struct {
	Promoted int             `json:"promoted"`
	Took     []time.Duration `json:"took"`
	Writes   int             `json:"writes"` // of words
	Lost     int             `json:"lost"`
	Calls    int             `json:"calls"` // of the system
	Failed   int             `json:"failed"`
	Longest  time.Duration   `json:"longest"` // step of a writer, of 64 KiB
}

// forking is how long calls of fork take, in order.
type forking struct {
	Took []time.Duration `json:"took"`
}

func (f forking) first() time.Duration { return f.Took[0] }
func (f forking) later() time.Duration { return bench.QuantilesOf(f.Took[1:]).P50 }

// measureForks lets interpreters that differ in the heap alone do the same work, one after the other.
func measureForks(ctx context.Context, opts options, lib string, out io.Writer) (*forked, error) {
	fmt.Fprintln(out, "measuring forks with the shared heap and without")
	w := opts.forks
	f := &forked{Bytes: w.written, Arrays: w.arrays}
	for _, run := range []struct {
		work          string
		bytes, rounds int
		preload       string
		result        any
	}{
		{"writers", w.written, w.writtenForks, lib, &f.On},
		{"writers", w.written, w.writtenForks, "", &f.Off},
		{"fork", w.arrays, w.arraysForks, lib, &f.ForkOn},
		{"fork", w.arrays, w.arraysForks, "", &f.ForkOff},
	} {
		c := exec.CommandContext(ctx, opts.python, "-c", forksScript, run.work, strconv.Itoa(run.bytes), strconv.Itoa(run.rounds))
		c.Stderr = os.Stderr
		c.Env = append(os.Environ(), "LD_PRELOAD="+run.preload, "NDBRIDGE_HEAP_PROMOTE=always", "OPENBLAS_NUM_THREADS=1")
		text, err := c.Output()
		if err == nil {
			err = json.Unmarshal(text, run.result)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", run.work, err)
		}
	}
	return f, nil
}

func printForks(out io.Writer, f *forked) {
	if f == nil {
		return
	}
	fmt.Fprintf(out, "\nForks with the shared heap on and off: four threads write to %s, which are promoted after each fork; and of %s of\n"+
		"arrays a hundredth is leased.\n\n", bench.SizeText(f.Bytes), bench.SizeText(f.Arrays))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "heap\tpromotions\tof which\twrites\tlost\treads\tfailed\tlongest step\tfirst fork\tlater forks\t")
	for _, r := range []struct {
		name string
		w    writing
		f    forking
	}{{"on", f.On, f.ForkOn}, {"off", f.Off, f.ForkOff}} {
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t\n", r.name, r.w.Promoted, bench.TimeText(bench.QuantilesOf(r.w.Took).P50),
			r.w.Writes, r.w.Lost, r.w.Calls, r.w.Failed, bench.TimeText(r.w.Longest), bench.TimeText(r.f.first()), bench.TimeText(r.f.later()))
	}
	_ = table.Flush() // it writes where all else was written
}

// forks holds promotion to no lost write and no failed call, and forks to what they cost without the heap.
func (j *judge) forks(f *forked) {
	if f == nil {
		return
	}
	figure := fmt.Sprintf("promotion of %s beside 4 writers", bench.SizeText(f.Bytes))
	j.add(figure+", each time", "no write lost, no system call failed", fmt.Sprintf("%d of %d, %d of %d, %d promotions", f.On.Lost, f.On.Writes,
		f.On.Failed, f.On.Calls, f.On.Promoted), f.On.Lost+f.On.Failed == 0 && f.On.Promoted == len(f.On.Took))
	j.within(figure+", p50", bench.QuantilesOf(f.On.Took).P50, 60*time.Millisecond)
	const pause = 5 * time.Millisecond
	j.add(figure+", longest step of a writer", "<= "+bench.TimeText(pause)+" more than without",
		bench.TimeText(f.On.Longest)+" / "+bench.TimeText(f.Off.Longest), f.On.Longest <= f.Off.Longest+pause)
	figure = fmt.Sprintf("fork with %s of arrays, 1 %% leased", bench.SizeText(f.Arrays))
	j.atMost(figure+", the first", f.ForkOn.first(), 1.1, "without the heap", f.ForkOff.first())
	j.atMost(figure+", later ones, p50", f.ForkOn.later(), 1.1, "without the heap", f.ForkOff.later())
}
