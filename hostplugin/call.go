package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Kw are keyword arguments of a call, after all others.
type Kw map[string]any

// Out says where the result of a call goes: hostplugin.Out(y), behind the arguments and before [Kw], has the program write
// the array that the function returns into y, which is a writable view of the host's own memory ([Session.New], [Pool])
// with the result's dtype and shape. The function is not told of it. The program copies once, and not at all if the
// function has returned an array over that very memory, as one can that has got it as an argument, too. The
// [Result] has no array, and need not be closed.
//
// A result that is no array (core.ErrUnsupported), or whose dtype or shape are other ones (core.ErrDType,
// core.ErrLayout), leaves y as it was; so does an exception of the function. A y that is not writable is
// core.ErrReadOnly, and one that is not the host's, or that is given to [Func.Stream], core.ErrUnsupported.
type Out *core.View

// A FuncOption says how a function is called, or what [Session.Set] sets.
type FuncOption interface{ applyFunc(f *Func) }

type funcOption func(f *Func)

func (o funcOption) applyFunc(f *Func) { o(f) }

// As says whose arrays the arguments of a function become, or those in what is set: "numpy", "torch", "jax". Without it, an argument becomes what
// the annotation of its parameter says (numpy.ndarray, torch.Tensor, jax.Array), and otherwise what [Program].Arguments says.
func As(framework string) FuncOption { return funcOption(func(f *Func) { f.framework = framework }) }

// Func is a function of a program's: anything that Python can call. It was looked up once: if the program gives its
// name to another one, a Func stays what it was. All methods are safe for concurrent use. The caller closes it,
// unless it closes the session.
//
// # Arguments
//
// Arguments are nil, booleans, integers of any size (also *big.Int), floats, complex numbers, strings, []byte (bytes),
// slices (list), maps and structs (dict; the tag `python:"name"` names a field), and views, anywhere among them.
//
// A view that [Session.New] or a [Pool] has given becomes an array over the same memory: nothing is copied, and
// what the function writes there is what the view shows. If the view is not writable, neither is the array. So does a view of
// an array of another program, whose lease stands until this program has dropped the array. A view of a name of the same
// program arrives as the very object that it was taken of. Refused are views of files that may shrink, results on a GPU of the same program,
// and memory on a GPU that only two processes can share.
//
// # Threads
//
// A call runs on one of the program's workers ([Program].Workers), which are threads; as many calls as there are workers
// run at once, as far as Python's lock allows, and the others wait. What a coroutine function returns is
// awaited, on the event loop that the program runs, or else on one that ndbridge runs.
type Func struct {
	session   *Session
	name      string
	target    uint64
	framework string
	closed    atomic.Bool
}

// Func looks a function up: `predict`, `model.predict`, `handlers["x"]`, or what is published under the name. As [Session.View], it waits for a name that does
// not exist yet. Before a name may stand the module that has it, which is imported in the program for it: `json:dumps`, `package.sub:Class.method`.
// The error wraps core.ErrNotFound, core.ErrUnsupported (what has the name cannot be called, or
// the plugin calls no functions), core.ErrPython, core.ErrUnavailable, core.ErrClosed, or the error of ctx.
func (s *Session) Func(ctx context.Context, name string, opts ...FuncOption) (*Func, error) {
	const op = "func"
	f := &Func{session: s, name: name}
	for _, o := range opts {
		o.applyFunc(f)
	}
	form, err := values.Append(nil, name, nil)
	if err != nil {
		return nil, s.wrap(op, name, err)
	}
	r := calls.Request{Op: calls.OpFunc, Framework: f.framework, Values: form}
	if usual := s.launch.program.Arguments; f.framework == "" && usual != "" {
		r.Framework, r.Flags = usual, calls.FlagUsual
	}
	var a calls.Answer
	if err := s.call(ctx, op, name, &r, &a); err != nil {
		return nil, err
	}
	f.target = a.Target
	return f, nil
}

// Name is the name that the function was looked up by.
func (f *Func) Name() string { return f.name }

// Close lets the program forget the function, and does not wait for that. Calls that are under way go on. It is idempotent, and never
// fails.
func (f *Func) Close() error {
	if !f.closed.Swap(true) {
		go func() { // it waits for a worker, and all may be at work; an error says that the program is gone
			_ = f.session.call(context.Background(), "close", f.name, &calls.Request{Op: calls.OpDrop, Target: f.target}, new(calls.Answer))
		}()
	}
	return nil
}

// Call calls the function and waits for its result. Keyword arguments come last, as [Kw]. The caller closes the result.
//
// An exception is a [*core.PythonError] within the error, which wraps core.ErrPython. When ctx ends, a call that
// has not begun never will, and an exception (ndbridge.Cancelled) is raised in one that runs; the error wraps that of
// ctx and says which of the two happened, or that the function goes on all the same, or that it did and the program was ended for it
// ([Program].OnStuck). A call is never made
// twice. When the program dies, its calls fail at once with core.ErrUnavailable, and views stay readable. The other
// errors: core.ErrUnsupported (an argument or a result cannot cross; the text says which), core.ErrReadOnly,
// core.ErrClosed.
func (f *Func) Call(ctx context.Context, args ...any) (Result, error) {
	c, err := f.request(ctx, args)
	if err != nil {
		return Result{}, err
	}
	return f.call(ctx, c)
}

// call makes a call. The arrays of its request stay until then, or for as long as the result may show them.
func (f *Func) call(ctx context.Context, c *carrier) (Result, error) {
	result, err := f.session.result(ctx, "call", f.name, c.sent())
	switch {
	case err != nil:
	case result.of == nil:
		err = f.session.wrap("call", f.name, &core.Error{Kind: core.ErrProtocol, Err: errors.New("the end of a generator, for a call")})
	case result.of.showsFile():
		result.of.done = c.done
		return result, nil
	}
	c.done()
	return result, err
}

// Future is a call that is under way. All methods are safe for concurrent use.
type Future struct {
	done   chan struct{}
	result Result
	err    error
}

// Go begins a call and does not wait for it. Arguments may be changed when it has returned, except for what views show.
func (f *Func) Go(ctx context.Context, args ...any) *Future {
	out := &Future{done: make(chan struct{})}
	c, err := f.request(ctx, args)
	if err != nil {
		out.err = err
		close(out.done)
		return out
	}
	go func() {
		defer close(out.done)
		out.result, out.err = f.call(ctx, c)
	}()
	return out
}

// Done is closed when the call is over.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait waits until the call is over: then its result and its error are those of [Func.Call], each time. If ctx ends before,
// the error is that of ctx, and the call goes on.
func (f *Future) Wait(ctx context.Context) (Result, error) {
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		return Result{}, &core.Error{Op: "wait", Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
}

// Stream calls a generator function, or any function that returns an iterator, and gives its values one by one. The next
// one is made only when it is asked for. Leaving the loop closes the generator. The caller closes each result. The
// errors are those of Call; after one there is no more.
func (f *Func) Stream(ctx context.Context, args ...any) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		c, err := f.request(ctx, args)
		if err != nil {
			yield(Result{}, err)
			return
		}
		defer c.done()
		if c.request.Flags&calls.FlagOut != 0 {
			yield(Result{}, f.session.wrap("call", f.name, &core.Error{
				Kind: core.ErrUnsupported, Err: errors.New("a generator has many results"), Remedy: "call it without Out",
			}))
			return
		}
		c.request.Flags |= calls.FlagStream
		var a calls.Answer
		if err := f.session.call(ctx, "call", f.name, c.sent(), &a); err != nil {
			yield(Result{}, err)
			return
		}
		generator := a.Target
		defer func() { // also when the context has ended; an error is one of a generator that nobody listens to
			_ = f.session.call(context.WithoutCancel(ctx), "close", f.name, &calls.Request{Op: calls.OpDrop, Target: generator}, new(calls.Answer))
		}()
		for {
			result, err := f.session.result(ctx, "call", f.name, &calls.Request{Op: calls.OpNext, Target: generator})
			if result.of == nil && err == nil {
				return
			}
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// request makes the request of a call. The caller calls done when it needs it no more.
func (f *Func) request(ctx context.Context, args []any) (*carrier, error) {
	var kw Kw
	if n := len(args); n > 0 {
		if last, ok := args[n-1].(Kw); ok {
			args, kw = args[:n-1], last
		}
	}
	var out Out
	wanted := false
	if n := len(args); n > 0 {
		if out, wanted = args[n-1].(Out); wanted {
			args = args[:n-1]
		}
	}
	for i, a := range args {
		switch a.(type) {
		case FuncOption:
			return nil, f.session.wrap("call", f.name, &core.Error{
				Kind: core.ErrConfig, Err: fmt.Errorf("argument %d is an option of the whole function", i), Remedy: "pass it to Session.Func",
			})
		case Kw, Out:
			return nil, f.session.wrap("call", f.name, &core.Error{
				Kind: core.ErrConfig, Err: fmt.Errorf("argument %d is a %T, which comes behind all others", i, a),
				Remedy: "pass Out behind the arguments, and Kw last, once each",
			})
		}
	}
	if err := f.session.callable(ctx, "call", f.name); err != nil {
		return nil, err
	}
	if f.closed.Load() {
		return nil, f.session.wrap("call", f.name, &core.Error{Kind: core.ErrClosed, Err: errors.New("the function was closed")})
	}
	c := f.session.carrier(ctx)
	r := &c.request
	r.Op, r.Target, r.Framework = calls.OpCall, f.target, f.framework
	var err error
	r.Values, err = values.AppendCall(r.Values, args, kw, c.add)
	if err == nil && wanted {
		r.Flags |= calls.FlagOut
		err = c.output(out)
	}
	if err != nil {
		c.done()
		return nil, f.session.unsent("call", f.name, "arguments", err)
	}
	return c, nil
}
