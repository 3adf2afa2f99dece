// Command bench measures how long a host takes to get a view of a Python program's array, beside the usual
// ways to hand an array to another process, in one interleaved run, and holds it to its goals.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

type options struct {
	python string // an interpreter with numpy, torch, jax and grpcio
	more   string // one with pyarrow, or ""
	cuda   string // one with cuda.core, or ""

	python314 string // one of Python 3.14, with numpy, or ""

	ray    string // one with Ray, or ""
	flight string // extras, which has the client of Arrow Flight, or ""
	lib    string // folder of the plugins

	ndbridge string // the command
	trackers string // an interpreter with wandb and TensorBoard, or ""
	device   string // of torch, of the training that is inspected
	json     string // file to write
	program  io.Writer

	plan       bench.Plan
	idle       time.Duration
	hammer     time.Duration
	heapSizes  []heapSize
	heapMemory int // bytes of the arrays whose memory is measured
	forks      forkWork
	attach     attachWork
	training   trainingWork
	epochs     epochsWork
	shown      shownWork
	only       string // the one part that is measured, or ""
}

func main() {
	if mode := os.Getenv(otherSide); mode != "" {
		if err := answer(mode); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	opts := options{
		program: os.Stderr, plan: bench.Plan{Sizes: []int{4 * bench.KiB, bench.MiB, 64 * bench.MiB, bench.GiB}, Turn: 200},
		idle: 10 * time.Second, heapSizes: fullHeapSizes(), heapMemory: bench.GiB,
		forks:  forkWork{64 * bench.MiB, 100, 2 * bench.GiB, 10},
		attach: attachWork{64 * bench.MiB, 10, 20, 500 * time.Millisecond}, training: trainingWork{30, time.Second}, epochs: epochsWork{50, 4, 128},
		shown: shownWork{300, 256, bench.GiB, 10, 2 * time.Second, 10 * time.Second},
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&opts.python, "python", "python3", "interpreter with numpy, torch, jax and grpcio")
	flags.StringVar(&opts.more, "python-arrow", "", "interpreter with pyarrow")
	flags.StringVar(&opts.cuda, "python-cuda", "", "interpreter with cuda.core")
	flags.StringVar(&opts.ray, "python-ray", "", "interpreter with Ray")
	flags.StringVar(&opts.flight, "flight", "", "extras, which has the client of Arrow Flight")
	flags.StringVar(&opts.lib, "lib", os.Getenv("NDBRIDGE_LIB"), "folder of the plugins")
	flags.StringVar(&opts.ndbridge, "ndbridge", "", "the command ndbridge; without it no training is inspected")
	flags.StringVar(&opts.device, "training-device", "cpu", "device of torch on which the training is that is inspected")
	flags.StringVar(&opts.trackers, "python-trackers", "", "interpreter with wandb and TensorBoard, of the same version as that with torch")
	flags.StringVar(&opts.json, "json", "", "file for the results")
	flags.IntVar(&opts.plan.Rounds, "rounds", 100, "how often all is measured, in turns")
	flags.DurationVar(&opts.hammer, "hammer", 2*time.Minute, "how long callers go at full rate, first of views and then of functions")
	flags.StringVar(&opts.python314, "python-3.14", "", "interpreter of Python 3.14 with numpy, to which hosts attach that it does not know of")
	watch := flags.Duration("watch", 10*time.Second, "how long the local variables of a program are looked at")
	noHeap := flags.Bool("no-heap", false, "leave the comparison of the shared heap out")
	flags.StringVar(&opts.only, "only", "", "measure one part alone: "+strings.Join(partNames(), ", "))
	brief := flags.Bool("brief", false, "only a few small measurements, to see that all works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if opts.only != "" && !slices.Contains(partNames(), opts.only) {
		return fmt.Errorf("-only %s: there are %s", opts.only, strings.Join(partNames(), ", "))
	}
	opts.attach.windows = int(*watch / opts.attach.window)
	if *brief {
		opts.attach = attachWork{opts.attach.bytes, 2, 3, 50 * time.Millisecond} // smaller ones the libc may not map by themselves
		opts.plan = bench.Plan{Sizes: []int{4 * bench.KiB, bench.MiB}, Rounds: 2, Turn: 20}
		opts.idle, opts.hammer, opts.heapSizes = 200*time.Millisecond, 2*time.Second, briefHeapSizes()
		opts.heapMemory = 32 * bench.MiB
		opts.training, opts.epochs = trainingWork{2, 50 * time.Millisecond}, epochsWork{2, 2, 16}
		opts.forks = forkWork{4 * bench.MiB, 3, 32 * bench.MiB, 3}
		opts.shown = shownWork{20, 256, 8 * bench.MiB, 2, 0, time.Second}
	}
	if *noHeap {
		opts.heapSizes = nil
	}
	report, err := measure(ctx, opts, out)
	if err != nil {
		return err
	}
	if err := report.print(out); err != nil || opts.json == "" {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(opts.json), 0o755); err != nil {
		return err
	}
	return os.WriteFile(opts.json, append(text, '\n'), 0o644)
}
