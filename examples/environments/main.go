// Command environments joins two Python environments that cannot be one: what a program with NumPy 1.x measures, a model of
// PyTorch in another process reads, in the memory in which it was measured.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func main() {
	if err := run(context.Background(), os.Stdout, 5); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, measurements int) error {
	host, err := hostplugin.Open(ctx, "ndbridge.hcl")
	if err != nil {
		return err
	}
	defer host.Close() //nolint:errcheck // what failed was returned before
	instrument, err := host.Start(ctx, "instrument")
	if err != nil {
		return err
	}
	model, err := host.Start(ctx, "model")
	if err != nil {
		return err
	}
	if err := introduce(ctx, out, "instrument", instrument); err != nil {
		return err
	}
	if err := introduce(ctx, out, "model", model); err != nil {
		return err
	}
	traces, err := instrument.View(ctx, "traces", hostplugin.NoCopy())
	if err != nil {
		return err
	}
	defer traces.Close() //nolint:errcheck // the session says what failed
	measure, err := instrument.Func(ctx, "measure")
	if err != nil {
		return err
	}
	tones, err := model.Func(ctx, "tones", hostplugin.As("torch"))
	if err != nil {
		return err
	}
	for i := range measurements {
		if err := once(ctx, out, i, measure, tones, traces); err != nil {
			return err
		}
	}
	return nil
}

// once has the instrument measure, and compares what the model hears with what was there.
func once(ctx context.Context, out io.Writer, i int, measure, tones *hostplugin.Func, traces *core.View) error {
	measured, err := measure.Call(ctx, i)
	if err != nil {
		return err
	}
	defer measured.Close() //nolint:errcheck // the session says what failed
	var there []int64
	if err := measured.Decode(&there); err != nil {
		return err
	}
	heard, err := tones.Call(ctx, traces) // the one program's array, as a tensor in the other one
	if err != nil {
		return err
	}
	defer heard.Close() //nolint:errcheck // the session says what failed
	var result *core.View
	if err := heard.Decode(&result); err != nil {
		return err
	}
	got, err := core.Slice[int64](result)
	if err != nil {
		return err
	}
	word := "all are right"
	if !slices.Equal(got, there) {
		word = "not all are right"
	}
	_, err = fmt.Fprintf(out, "measurement %d: %d tones, %s\n", i, len(got), word)
	return err
}

func introduce(ctx context.Context, out io.Writer, name string, session *hostplugin.Session) error {
	version, err := session.Func(ctx, "version")
	if err != nil {
		return err
	}
	result, err := version.Call(ctx)
	if err != nil {
		return err
	}
	defer result.Close() //nolint:errcheck // the session says what failed
	var text string
	if err := result.Decode(&text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", name, text)
	return err
}
