package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// worker answers requests on a thread of its own, and runs functions there or on the main thread.
type worker struct {
	*callee
	thread  *py.Thread
	blocked *uint64   // the signals that the program's threads block
	carries *hostCall // of a lane: the call of the program's that the host has, and has not answered

	mu        sync.Mutex
	stage     stage
	runs      *py.Thread         // on which a function runs
	stop      context.CancelFunc // ends the wait for a name; nil: there is none
	raised    bool               // an exception was raised in the function because its call was given up
	stopped   bool               // a coroutine was cancelled for that as soon as it had begun
	awaited   py.Object          // the future that the function waits for; 0: none
	cancelled bool
}

// stage is how far a request has come.
type stage int

const (
	resting  stage = iota // or the function is over
	waiting               // for Python's lock, or for a name
	running               // the function runs
	starting              // what the function has returned is about to be awaited
)

// End implements handoff.Ender.
func (w *worker) End() { w.thread.End() }

// Answer implements calls.Worker.
func (w *worker) Answer(r *calls.Request, a *calls.Answer) error {
	w.release(r)
	defer w.holds.Soon()
	if err := w.state.failed(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w.blocked = w.signals.blocked()
	w.mu.Lock()
	w.stage, w.runs, w.stop, w.cancelled, w.raised, w.stopped = waiting, w.thread, stop, false, false, false
	w.mu.Unlock()
	defer w.over()
	a.Kind = calls.Done
	switch r.Op {
	case calls.OpFunc:
		return w.find(ctx, r, a)
	case calls.OpValue:
		return w.value(ctx, r, a)
	case calls.OpSet:
		return w.set(ctx, r)
	case calls.OpDrop:
		return w.forget(ctx, r.Target)
	case calls.OpOffer:
		return w.offer(r)
	case calls.OpAwait:
		return w.carry(ctx, a)
	case calls.OpReturn:
		return w.answer(r)
	case calls.OpNext:
		return w.next(ctx, r, a)
	default:
		return w.call(ctx, r, a)
	}
}

func (w *worker) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = resting
}

// release gives back the leases that a request has ended. If the request is going to take the GIL to run something, it gives back what
// they have held in Python, too: so a function finds the memory free, and no other thread wants the GIL meanwhile.
func (w *worker) release(r *calls.Request) {
	if len(r.Ended) == 0 {
		return
	}
	w.holds.Gather(func() { w.Release(r.Ended...) })
	if r.Op != calls.OpCall && r.Op != calls.OpNext {
		w.holds.Soon()
	}
}

// ndbridgeClass is a class of the module ndbridge, or 0.
func ndbridgeClass(g *py.GIL, name string) py.Object {
	if module, ok := g.Loaded("ndbridge"); ok {
		if class, ok := g.Variable(module, name); ok {
			return class
		}
	}
	return 0
}

// begin says that the function runs from now on, or why it does not.
func (w *worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelled {
		return calls.ErrCancelled()
	}
	w.stage = running
	return nil
}

// end says that the function is over. An exception that has not reached it does not come any more.
func (w *worker) end(g *py.GIL) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = resting
	if w.cancelled {
		w.runs.Calm(g)
	}
}

// run runs a function of the program's.
func (w *worker) run(g *py.GIL, f, args, kw py.Object) (py.Object, error) {
	if !w.forks {
		if _, err := runOwn(g, "ndbridge.forks", forksCode); err != nil {
			return 0, err
		}
		w.forks = true
	}
	if err := w.begin(); err != nil {
		return 0, err
	}
	defer w.end(g)
	defer w.host.runs(g.ID(), w)()
	o, err := g.CallOnce(f, args, kw, w.blocked)
	if err != nil || !isAwaitable(g, o) {
		return o, err
	}
	return w.await(g, o)
}

// awaitObject waits for what has the name that a request has, and calls do with it. It may be that of something in a module only if a
// function is asked for.
func (w *worker) awaitObject(ctx context.Context, op string, r *calls.Request, do func(g *py.GIL, o py.Object) error) error {
	var text, module string
	if err := values.Decode(r.Values, &text, nil); err != nil {
		return about(op, "", "", err)
	}
	path, err := names.Parse(text)
	if r.Op == calls.OpFunc {
		module, path, err = names.ParseFunction(text)
	}
	if err != nil {
		return about(op, text, "", err)
	}
	return w.Program.await(ctx, op, text, r.Flags&calls.FlagNoWait != 0, func(ctx context.Context) error {
		if module != "" {
			return w.inModule(ctx, module, path, do)
		}
		return w.thread.Do(func(g *py.GIL) error {
			if ctx.Err() != nil {
				return calls.ErrCancelled()
			}
			t, err := w.Program.find(g, path)
			if _, missing := errors.AsType[*missingError](err); missing && r.Op == calls.OpFunc {
				if o, ok := builtin(g, path); ok {
					return do(g, o)
				}
			}
			if err != nil {
				return err
			}
			defer t.close()
			o, err := w.whole(g, &t)
			if err != nil {
				return err
			}
			return do(g, o)
		})
	})
}

// builtin gives what Python finds where the program has no such variable: `len`, `print`, `str.upper`.
func builtin(g *py.GIL, path names.Path) (o py.Object, ok bool) {
	if path.Of != (names.Function{}) {
		return 0, false
	}
	if o, ok = g.Loaded("builtins"); !ok {
		return 0, false
	}
	if o, ok = g.Variable(o, path.Root); !ok {
		return 0, false
	}
	for _, s := range path.Steps {
		if s.Kind != names.Attr {
			return 0, false
		}
		var err error
		if o, err = g.Attr(o, s.Text); err != nil {
			return 0, false
		}
	}
	return o, true
}

func (w *worker) find(ctx context.Context, r *calls.Request, a *calls.Answer) error {
	return w.awaitObject(ctx, "func", r, func(g *py.GIL, o py.Object) error {
		if !g.IsCallable(o) {
			return &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("it is %s, which cannot be called", g.TypeName(o))}
		}
		takes, err := w.parameters(g, o, r.Framework, r.Flags&calls.FlagUsual != 0)
		if err != nil {
			return err
		}
		a.Target = w.keep(&function{object: g.Keep(o), takes: takes})
		w.signals.forget() // what was waited for may stand behind what changes them
		return nil
	})
}

func (w *worker) value(ctx context.Context, r *calls.Request, a *calls.Answer) error {
	return w.awaitObject(ctx, "value", r, func(g *py.GIL, o py.Object) error { return w.write(ctx, g, "result", o, a, nil) })
}

// call calls a function.
func (w *worker) call(ctx context.Context, r *calls.Request, a *calls.Answer) error {
	f, err := w.function(r.Target)
	if err != nil {
		return err
	}
	var gpus onGPUs
	err = w.do(ctx, func(g *py.GIL) error {
		defer w.retained(r, a) //nolint:contextcheck // what looks after memory outlives the call
		return g.Nested(func() error {
			result, err := g.Result(func() (py.Object, error) { // the arguments end with it
				args, kw, err := w.arguments(g, f, r)
				if err != nil {
					return 0, err
				}
				return w.run(g, f.object, args, kw)
			})
			if err == nil && r.Flags&calls.FlagStream != 0 {
				err = w.stream(g, result, w.gpus(r), a)
			}
			gpus = left(w.gpus(r))
			if err == nil && r.Flags&calls.FlagStream == 0 { // while the GPU works
				err = w.give(ctx, g, result, r, a)
			}
			return err
		})
	})
	return w.settled(gpus, a, err) //nolint:contextcheck // the GPU is waited for whatever becomes of the call
}

// retained counts the arrays of a request that are still in use.
func (w *worker) retained(r *calls.Request, a *calls.Answer) {
	for i := range r.Arrays {
		if s, err := w.segment(r.Arrays[i].Segment); err == nil && r.Arrays[i].Lease == 0 {
			s.Over(r.Arrays[i].Held())
		}
	}
	for i := range r.Arrays {
		if r.Arrays[i].Lease == 0 && r.Arrays[i].Held().Load() != 0 {
			a.Retained++
		}
	}
}

// stream makes the values of an iterable those of a generator.
func (w *worker) stream(g *py.GIL, o py.Object, gpus []int, a *calls.Answer) error {
	async := g.ClassHas(o, "__anext__")
	if !async {
		builtins, err := g.Import("builtins")
		if err != nil {
			return err
		}
		if o, err = g.CallMethod(builtins, "iter", []py.Object{o}, nil); err != nil {
			return err
		}
	}
	a.Target = w.keep(&function{object: g.Keep(o), generator: true, async: async, gpus: gpus})
	return nil
}

// next gives the next value of a generator.
func (w *worker) next(ctx context.Context, r *calls.Request, a *calls.Answer) error {
	f, err := w.function(r.Target)
	if err != nil {
		return err
	}
	method, end := "__next__", "StopIteration"
	if f.async {
		method, end = "__anext__", "StopAsyncIteration"
	}
	var gpus onGPUs
	err = w.do(ctx, func(g *py.GIL) error {
		next, err := g.Attr(f.object, method)
		if err != nil {
			return err
		}
		args, err := g.NewTuple()
		if err != nil {
			return err
		}
		o, err := w.run(g, next, args, 0)
		gpus = left(f.gpus)
		if py.Raised(err, end) {
			a.Kind = calls.Over
			return nil
		}
		if err == nil { // while the GPU works
			err = w.write(ctx, g, "result", o, a, f.gpus)
		}
		return err
	})
	return w.settled(gpus, a, err) //nolint:contextcheck // the GPU is waited for whatever becomes of the call
}
