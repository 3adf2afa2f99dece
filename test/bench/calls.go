package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

// Calls of a program's functions.
const (
	callEmpty = "ndbridge, call of an empty function"
	callApart = "ndbridge, call of an empty function, asleep" + onTwoCPUs
	callLast  = "ndbridge, call"
	callTotal = "ndbridge, call of x.sum(), without the sum"
	callTwice = "ndbridge, call of 2 * x, without the product"

	// largestCall is the size of the largest arguments that are measured.
	largestCall = 64 * bench.MiB
)

// callSizes are the sizes of arguments.
func callSizes(plan *bench.Plan) []int {
	return slices.DeleteFunc(slices.Clone(plan.Sizes), func(size int) bool { return size > largestCall })
}

// addCalls has calls measured of a program that spins.
func (l *lab) addCalls(p *bench.Program) error {
	sizes := callSizes(&l.plan)
	caller, err := emptyCaller(p)
	if err != nil {
		return err
	}
	l.plan.Add(bench.Key{Way: callEmpty}, l.plan.Turn, caller).Count = caller
	for _, size := range sizes {
		caller, err := lastCaller(p, size)
		if err != nil {
			return err
		}
		l.plan.Add(bench.Key{Way: callLast, Framework: "numpy", Bytes: size}, l.plan.Turn, caller).Count = caller
	}
	for _, size := range []int{sizes[0], sizes[len(sizes)-1]} {
		calls, every := bench.Copied(&l.plan, size) // the function takes as long as a copy
		for _, k := range []bench.Key{{Way: callTotal, Framework: "numpy", Bytes: size}, {Way: callTwice, Framework: "torch", Bytes: size}} {
			c, err := newComputing(p, k)
			if err != nil {
				return err
			}
			s := l.plan.Add(k, 1)
			s.Turn, s.Every = c.turn(min(calls, 5), calls), every
		}
	}
	return nil
}

// addCallApart has an empty function called in a program that sleeps.
func (l *lab) addCallApart(p *bench.Program, pid int) error {
	caller, err := emptyCaller(p)
	if err != nil {
		return err
	}
	l.addApart(bench.Key{Way: callApart}, l.plan.Turn/2, caller, pid)
	return nil
}

// emptyCaller calls a function without arguments that does nothing.
func emptyCaller(p *bench.Program) (bench.Caller, error) {
	f, err := p.Func(context.Background(), "functions.empty")
	return bench.Caller{Do: func(ctx context.Context) error {
		r, err := f.Call(ctx)
		if err != nil {
			return err
		}
		return r.Close()
	}}, err
}

// argument is an array of the host's whose last element the function must see.
type argument struct {
	view   *core.View
	data   []float32
	number int
}

func newArgument(p *bench.Program, size int) (a argument, err error) {
	if a.view, err = p.New(core.Float32, size/4); err != nil { // it is closed with the session
		return a, err
	}
	a.data, err = core.Slice[float32](a.view)
	return a, err
}

// next changes the last element.
func (a *argument) next() float64 {
	const numbers = 4093
	a.number = (a.number + 1) % numbers
	a.data[len(a.data)-1] = float32(a.number)
	return float64(a.number)
}

// lastCaller gives a function an array, the same each time with another last element, which the function returns.
func lastCaller(p *bench.Program, size int) (bench.Caller, error) {
	f, err1 := p.Func(context.Background(), "functions.last")
	arg, err2 := newArgument(p, size)
	args := []any{arg.view}
	var got float64 // once, since Decode has it on the heap
	return bench.Caller{Do: func(ctx context.Context) error {
		want := arg.next()
		r, err := f.Call(ctx, args...)
		if err != nil {
			return err
		}
		return errors.Join(r.Decode(&got), isNumber(got, want), r.Close())
	}}, errors.Join(err1, err2)
}

func isNumber(got, want float64) error {
	if got != want {
		return fmt.Errorf("the function gave %v, expected %v", got, want)
	}
	return nil
}

// computing calls a function that takes its time, and says how much of it.
type computing struct {
	f     *hostplugin.Func
	arg   argument
	check func(r *computed, want float64) error
}

// computed is what such a function returns.
type computed struct {
	Took   int64      `python:"took"` // in nanoseconds
	Total  float64    `python:"total"`
	Double *core.View `python:"double"`
}

func newComputing(p *bench.Program, k bench.Key) (c *computing, err error) {
	c = &computing{}
	name := "functions.double"
	c.check = func(r *computed, want float64) error {
		got, err := core.At[float32](r.Double, r.Double.Len()-1)
		return errors.Join(err, isNumber(float64(got), 2*want))
	}
	if k.Way == callTotal {
		name = "functions.total"
		c.check = func(r *computed, want float64) error { return isNumber(r.Total, want) }
	}
	if c.f, err = p.Func(context.Background(), name, hostplugin.As(k.Framework)); err != nil {
		return nil, err
	}
	c.arg, err = newArgument(p, k.Bytes)
	return c, err
}

// call gives how much longer a call took than the function did, with what it returned read.
func (c *computing) call(ctx context.Context) (time.Duration, error) {
	want, out := c.arg.next(), computed{}
	start := time.Now()
	r, err := c.f.Call(ctx, c.arg.view)
	if err != nil {
		return 0, err
	}
	err = errors.Join(r.Decode(&out), c.check(&out, want))
	took := time.Since(start)
	return took - time.Duration(out.Took), errors.Join(err, r.Close())
}

func (c *computing) turn(warm, calls int) bench.Turn {
	took := make([]time.Duration, calls)
	return func(ctx context.Context) (_ []time.Duration, err error) {
		for range warm {
			if _, err := c.call(ctx); err != nil {
				return nil, err
			}
		}
		for i := range took {
			if took[i], err = c.call(ctx); err != nil {
				return nil, err
			}
		}
		return took, nil
	}
}

// calls holds calls to their goals.
func (j *judge) calls(plan *bench.Plan) {
	sizes := callSizes(plan)
	small, large := sizes[0], sizes[len(sizes)-1]
	empty := j.row(callEmpty, "", 0)
	j.within("call of an empty function", empty.P50, 5*time.Microsecond)
	if apart := j.row(callApart, "", 0); apart.N > 0 { // there are two CPUs
		j.beside("call of an empty function, asleep"+onTwoCPUs+", in the median round", apart, 1.3, bareFutex, j.row(bareFutex, "", 0))
	}
	total := j.row(callTotal, "numpy", large)
	j.within("what a call adds to numpy's x.sum() of "+bench.SizeText(large), total.P50, 8*time.Microsecond)
	j.atMost("what a call adds to numpy's x.sum() of "+bench.SizeText(large)+", in which both sides fall asleep", total.P50, 1.5,
		bareSilence, j.row(bareSilence, "", 0).P50)
	j.beside("what a call adds to numpy's x.sum() of "+bench.SizeText(large)+", in the median round", total, 1.1,
		"that of "+bench.SizeText(small), j.row(callTotal, "numpy", small))
	j.within("what a call adds to torch's 2 * x, "+bench.SizeText(large)+" there and back", j.row(callTwice, "torch", large).P50, 10*time.Microsecond)
	for _, peer := range callPeers() {
		for _, size := range sizes {
			if row := j.row(peer.Way, peer.Framework, size); size >= bench.MiB && row.N > 0 {
				j.faster("call with "+bench.SizeText(size)+" against "+peer.Way, j.row(callLast, "numpy", size).P50, row.P50, 100)
			}
		}
	}
	most, of := 0.0, bench.Key{}
	for _, row := range j.rows {
		if row.Allocations != nil && isCall(row.Key) && *row.Allocations >= most {
			most, of = *row.Allocations, row.Key
		}
	}
	j.add("allocations per call on the host, arrays used again", "0", fmt.Sprintf("%.2f (%s)", most, of), most < 0.5)
}

func isCall(k bench.Key) bool { return k.Way == callEmpty || k.Way == callLast }
