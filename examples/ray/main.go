// Command ray calls functions and actors of a Ray cluster: its one Python program is a driver of the cluster. The README beside this
// file says how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func main() {
	address := flag.String("address", "local", "of the cluster; local starts one on this machine")
	python := flag.String("python", "python3", "interpreter with Ray")
	flag.Parse()
	driver := hostplugin.Program{Script: "cluster.py", Args: []string{*address}, Python: *python}
	if err := run(context.Background(), os.Stdout, driver); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, driver hostplugin.Program) error {
	cluster, err := hostplugin.Run(ctx, driver)
	if err != nil {
		return err
	}
	defer cluster.Close()                      //nolint:errcheck // what failed was returned before
	x, err := cluster.New(core.Float64, 1<<20) // 8 MiB of the host's own memory
	if err != nil {
		return err
	}
	numbers, err := core.Slice[float64](x)
	if err != nil {
		return err
	}
	for i := range numbers {
		numbers[i] = float64(i % 1000)
	}

	// Eight tasks of the cluster add up the array, which goes to the object store once.
	var sum float64
	if err := call(ctx, cluster, "total", &sum, x); err != nil {
		return err
	}
	// The result of a task is read in the object store.
	var scaled *core.View
	if err := call(ctx, cluster, "scale", &scaled, x); err != nil {
		return err
	}
	values, err := core.Slice[float64](scaled)
	if err != nil {
		return err
	}
	// An actor keeps its state between calls.
	var n int
	for range 3 {
		if err := call(ctx, cluster, "count", &n, 2); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "the sum: %v\nthe largest of 1000 numbers is scaled to %v, and came by %v\nthe actor has counted to %d\n", sum, values[999], scaled.Route(), n)
	return err
}

// call calls a function of the driver's.
func call(ctx context.Context, cluster *hostplugin.Session, name string, into any, args ...any) error {
	f, err := cluster.Func(ctx, name)
	if err != nil {
		return err
	}
	result, err := f.Call(ctx, args...)
	if err != nil {
		return err
	}
	if into == nil {
		return result.Close()
	}
	return result.Decode(into) // the session closes what is still open
}
