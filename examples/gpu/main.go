// Command gpu runs a kernel of its own on an array of a Python program, in the program's GPU memory. It is
// built with the tag "cuda"; without that it says what is missing. The README beside this file says how to run it.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin"
)

//go:embed scale.ptx
var ptx []byte

func main() {
	config := flag.String("config", "ndbridge.hcl", "how to run the program")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *config); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, config string) (err error) {
	host, err := hostplugin.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	program, err := host.Start(ctx, "signal")
	if err != nil {
		return err
	}
	signal, err := program.View(ctx, "signal", hostplugin.Writable(), hostplugin.NoCopy())
	if err != nil {
		return err
	}
	values, err := double(ctx, signal)
	if err = errors.Join(err, signal.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, values[:4])
	return err
}

// double doubles the array's elements, and gives what they are then.
func double(ctx context.Context, signal *core.View) (values []float32, err error) {
	stream, err := cuda.NewStream(signal.Device().Index)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }() //nolint:contextcheck // it does not wait
	module, err := cuda.LoadModule(ctx, signal.Device().Index, ptx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, module.Close()) }()
	scale, err := module.Function(ctx, "scale")
	if err != nil {
		return nil, err
	}

	// The kernel waits for the work on the array that Python has given the GPU.
	config := cuda.LaunchConfig{Grid: cuda.Dim3{64}, Block: cuda.Dim3{256}}
	if err := scale.Launch(stream, config, signal, float32(2), uint64(signal.Len())); err != nil {
		return nil, err
	}
	if err := stream.Synchronize(ctx); err != nil {
		return nil, err
	}
	values = make([]float32, signal.Len())
	if _, err := core.Copy(ctx, values, signal); err != nil {
		return nil, err
	}
	return values, nil
}
