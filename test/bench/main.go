// Command bench measures how long a host takes to get a view of a Python program's array, beside
// the usual ways to hand an array to another process, in one interleaved run.
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
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

type options struct {
	python    string // an interpreter with numpy, torch, jax and grpcio
	lib       string // folder of the plugins
	json      string // file to write
	sizes     []size
	heapSizes []heapSize

	handoffSizes  []int // bytes
	handoffRounds int
}

// size is an array's size and how often it is measured.
type size struct {
	bytes  int
	rounds int // of each way
	views  int // of ndbridge in each round: they are cheap, and a p99 wants many
}

func fullSizes() []size {
	return []size{{4 * kibibyte, 300, 10}, {mebibyte, 200, 10}, {64 * mebibyte, 30, 40}, {gibibyte, 5, 200}}
}

func briefSizes() []size {
	return []size{{4 * kibibyte, 5, 2}, {mebibyte, 5, 2}, {8 * mebibyte, 2, 2}}
}

func main() {
	if spin := os.Getenv(pingPongVariable); spin != "" {
		if err := answerPings(spin); err != nil {
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
		sizes: fullSizes(), heapSizes: fullHeapSizes(), handoffSizes: []int{4 * kibibyte, gibibyte}, handoffRounds: 200,
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&opts.python, "python", "python3", "interpreter with numpy, torch, jax and grpcio")
	flags.StringVar(&opts.lib, "lib", os.Getenv("NDBRIDGE_LIB"), "folder of the plugins")
	flags.StringVar(&opts.json, "json", "", "file for the results")
	brief := flags.Bool("brief", false, "only a few small measurements, to see that all works")
	handoff := flags.Bool("handoff", false, "only the hand-off, as a table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *brief {
		opts.sizes, opts.heapSizes = briefSizes(), briefHeapSizes()
		opts.handoffSizes, opts.handoffRounds = []int{4 * kibibyte, mebibyte}, 2
	}
	if *handoff {
		rows, err := measureHandoff(ctx, opts, out)
		printHandoff(out, rows)
		return err
	}
	report, err := measure(ctx, opts, out)
	if err != nil {
		return err
	}
	if report.Handoff, err = measureHandoff(ctx, opts, out); err != nil {
		return err
	}
	if report.Heap, err = measureHeap(ctx, opts, out); err != nil {
		return err
	}
	report.print(out)
	if opts.json == "" {
		return nil
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
