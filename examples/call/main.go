// Command call calls functions of a Python program with arrays in its own memory. The README beside this file says how to run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func main() {
	if err := run(context.Background(), os.Stdout, hostplugin.Program{Script: "model.py"}); err != nil {
		log.Fatal(err)
	}
}

// prediction is what the function predict gives.
type prediction struct {
	Classes [][]int    `python:"classes"`
	Scores  *core.View `python:"scores"`
}

func run(ctx context.Context, out io.Writer, model hostplugin.Program) error {
	session, err := hostplugin.Run(ctx, model)
	if err != nil {
		return err
	}
	defer session.Close()                     //nolint:errcheck // what failed was returned before
	x, err := session.New(core.Float64, 2, 4) // the host's own memory
	if err != nil {
		return err
	}
	rows, err := core.Slice[float64](x)
	if err != nil {
		return err
	}
	copy(rows, []float64{1, 0, 0, 0, 0, 0, 0, 1})
	predict, err := session.Func(ctx, "predict")
	if err != nil {
		return err
	}
	result, err := predict.Call(ctx, x, hostplugin.Kw{"top": 2}) // x is a numpy.ndarray over the same memory
	if err != nil {
		return err
	}
	defer result.Close() //nolint:errcheck // the session says what failed
	var p prediction
	if err := result.Decode(&p); err != nil {
		return err
	}
	scores, err := core.Slice[float64](p.Scores)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "the best classes:", p.Classes, "the first score:", scores[0]); err != nil {
		return err
	}
	if err := inPlace(ctx, out, session, x); err != nil {
		return err
	}
	if err := into(ctx, out, session, x); err != nil {
		return err
	}
	if err := batches(ctx, out, predict); err != nil {
		return err
	}
	return stream(ctx, out, session)
}

// into has a result written into the host's memory.
func into(ctx context.Context, out io.Writer, session *hostplugin.Session, x *core.View) error {
	project, err := session.Func(ctx, "project")
	if err != nil {
		return err
	}
	y, err := session.New(core.Float64, 2, 3)
	if err != nil {
		return err
	}
	if _, err := project.Call(ctx, x, hostplugin.Out(y)); err != nil {
		return err
	}
	last, err := core.At[float64](y, 1, 2)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "written into the host's array:", last)
	return err
}

// classify gives the class of x with the highest score, from a call that is made for many at once.
func classify(ctx context.Context, batch *hostplugin.Batch, x []float64) (int, error) {
	result, err := batch.Call(ctx, func(row *core.View) error { // a row of the array that predict gets
		data, err := core.Slice[float64](row)
		copy(data, x)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer result.Close() //nolint:errcheck // the session says what failed
	var own struct {
		Classes []int `python:"classes"` // this caller's item
	}
	if err := result.Decode(&own); err != nil {
		return 0, err
	}
	return own.Classes[0], nil
}

// batches classifies four at once.
func batches(ctx context.Context, out io.Writer, predict *hostplugin.Func) error {
	batch, err := predict.Batch(hostplugin.BatchOptions{DType: core.Float64, Shape: []int{4}, Max: 64, Wait: 2 * time.Millisecond})
	if err != nil {
		return err
	}
	var classes [4]int
	var errs [4]error
	var callers sync.WaitGroup
	for i := range classes {
		callers.Go(func() { classes[i], errs[i] = classify(ctx, batch, []float64{float64(i) - 1.5, 0, 0, 0}) })
	}
	callers.Wait()
	if err := errors.Join(append(errs[:], batch.Close())...); err != nil { //nolint:contextcheck // Close waits, whatever became of ctx
		return err
	}
	_, err = fmt.Fprintln(out, "of four calls at once:", classes)
	return err
}

// inPlace lets a function write into the host's memory.
func inPlace(ctx context.Context, out io.Writer, session *hostplugin.Session, x *core.View) error {
	scale, err := session.Func(ctx, "scale")
	if err != nil {
		return err
	}
	done, err := scale.Call(ctx, x, 10.0)
	if err != nil {
		return err
	}
	first, err := core.At[float64](x, 0, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "scaled in place:", first); err != nil {
		return err
	}
	return done.Close()
}

// stream prints the values of a generator.
func stream(ctx context.Context, out io.Writer, session *hostplugin.Session) error {
	countdown, err := session.Func(ctx, "countdown")
	if err != nil {
		return err
	}
	for result, err := range countdown.Stream(ctx, 3) {
		if err != nil {
			return err
		}
		var n int
		if err := result.Decode(&n); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, n); err != nil {
			return err
		}
		if err := result.Close(); err != nil {
			return err
		}
	}
	return nil
}
