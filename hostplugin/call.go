package hostplugin

import (
	"context"
	"fmt"
	"iter"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Kw are keyword arguments of a call, after all others.
type Kw map[string]any

// A FuncOption says how a function is called, or what [Session.Set] sets.
type FuncOption interface{ applyFunc(f *Func) }

type funcOption func(f *Func)

func (o funcOption) applyFunc(f *Func) { o(f) }

// As says whose arrays the arguments of a function become, or those in what is set: "numpy", "torch", "jax". Without it, an argument becomes what
// the annotation of its parameter says (numpy.ndarray, torch.Tensor, jax.Array), and otherwise a numpy.ndarray.
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
// program arrives as the very object that it was taken of. Refused are views of memory of a GPU, but for such an object, and
// of files that may shrink.
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
}

// Func looks a function up: `predict`, `model.predict`, `handlers["x"]`. As [Session.View], it waits for a name that does
// not exist yet. The error wraps core.ErrNotFound, core.ErrUnsupported (what has the name cannot be called, or
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
	var a calls.Answer
	if err := s.call(ctx, op, name, &calls.Request{Op: calls.OpFunc, Framework: f.framework, Values: form}, &a); err != nil {
		return nil, err
	}
	f.target = a.Target
	return f, nil
}

// Name is the name that the function was looked up by.
func (f *Func) Name() string { return f.name }

// Close lets the program forget the function. Calls that are under way go on. It is idempotent, and never fails after
// the session's end.
func (f *Func) Close() error {
	if f.session.alive("close", f.name) != nil {
		return nil //nolint:nilerr // it was forgotten with the program
	}
	return f.session.call(context.Background(), "close", f.name, &calls.Request{Op: calls.OpDrop, Target: f.target}, new(calls.Answer))
}

// Call calls the function and waits for its result. Keyword arguments come last, as [Kw]. The caller closes the result.
//
// An exception is a [*core.PythonError] within the error, which wraps core.ErrPython. When ctx ends, a call that
// has not begun never will, and an exception (ndbridge.Cancelled) is raised in one that runs; the error wraps that of
// ctx and says which of the two happened, or that the function goes on all the same. A call is never made
// twice. When the program dies, its calls fail at once with core.ErrUnavailable, and views stay readable. The other
// errors: core.ErrUnsupported (an argument or a result cannot cross; the text says which), core.ErrReadOnly,
// core.ErrClosed.
func (f *Func) Call(ctx context.Context, args ...any) (*Result, error) {
	r, err := f.request(ctx, args)
	if err != nil {
		return nil, err
	}
	return f.session.result(ctx, "call", f.name, r)
}

// Future is a call that is under way. All methods are safe for concurrent use.
type Future struct {
	done   chan struct{}
	result *Result
	err    error
}

// Go begins a call and does not wait for it. Arguments may be changed when it has returned, except for what views show.
func (f *Func) Go(ctx context.Context, args ...any) *Future {
	out := &Future{done: make(chan struct{})}
	r, err := f.request(ctx, args)
	if err != nil {
		out.err = err
		close(out.done)
		return out
	}
	go func() {
		defer close(out.done)
		out.result, out.err = f.session.result(ctx, "call", f.name, r)
	}()
	return out
}

// Done is closed when the call is over.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait waits until the call is over: then its result and its error are those of [Func.Call], each time. If ctx ends before,
// the error is that of ctx, and the call goes on.
func (f *Future) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		return nil, &core.Error{Op: "wait", Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
}

// Stream calls a generator function, or any function that returns an iterator, and gives its values one by one. The next
// one is made only when it is asked for. Leaving the loop closes the generator. The caller closes each result. The
// errors are those of Call; after one there is no more.
func (f *Func) Stream(ctx context.Context, args ...any) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		r, err := f.request(ctx, args)
		if err != nil {
			yield(nil, err)
			return
		}
		r.Flags |= calls.FlagStream
		var a calls.Answer
		if err := f.session.call(ctx, "call", f.name, r, &a); err != nil {
			yield(nil, err)
			return
		}
		generator := a.Target
		defer func() { // also when the context has ended; an error is one of a generator that nobody listens to
			_ = f.session.call(context.WithoutCancel(ctx), "close", f.name, &calls.Request{Op: calls.OpDrop, Target: generator}, new(calls.Answer))
		}()
		for {
			result, err := f.session.result(ctx, "call", f.name, &calls.Request{Op: calls.OpNext, Target: generator})
			if result == nil && err == nil {
				return
			}
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// request makes the request of a call. What its views show stays until the request is over.
func (f *Func) request(ctx context.Context, args []any) (r *calls.Request, err error) {
	kw := Kw{}
	if n := len(args); n > 0 {
		if last, ok := args[n-1].(Kw); ok {
			args, kw = args[:n-1], last
		}
	}
	if err := f.session.callable(ctx, "call", f.name); err != nil {
		return nil, err
	}
	r = &calls.Request{Op: calls.OpCall, Target: f.target, Framework: f.framework}
	carry := carrier{session: f.session, ctx: ctx, request: r}
	r.Over = carry.over
	r.Values, err = values.Append(nil, values.Tuple{values.Tuple(args), map[string]any(kw)}, carry.array)
	if err != nil {
		carry.over()
		if gone := f.session.alive("call", f.name); gone != nil {
			err = gone // which is why there is no memory for arrays any more
		}
		return nil, f.session.wrap("call", f.name, values.Located("arguments", err))
	}
	return r, nil
}

// carrier collects the arrays of a request.
type carrier struct {
	session  *Session
	ctx      context.Context //nolint:containedctx // of the one call
	request  *calls.Request
	releases []func()
}

// over gives back what the views show, as far as the program does not use it any more.
func (c *carrier) over() {
	for _, release := range c.releases {
		release()
	}
}

// array adds a view to the request, and gives its index there.
func (c *carrier) array(v *core.View) (int, error) {
	m, _, release, err := v.Acquire()
	if err != nil {
		return 0, err
	}
	a := calls.Argument{Layout: v.Layout(), ReadOnly: !v.Writable()}
	own := hostMemory(m)
	lease, _ := v.Lender().(*leases.Lease)
	object, owns := c.session.leases.Object(lease)
	switch {
	case m == nil: // no elements
		a.Segment, err = c.session.space.Empty(c.ctx)
		a.Word = a.Segment
	case own != nil:
		a.Segment, err = c.session.space.Segment(c.ctx, own.File, v.Writable())
		a.Word = a.Segment
	case owns:
		a.Lease = object
	default:
		var over func()
		if over, err = c.lend(v, m, &a, release); err == nil {
			release = over
		}
	}
	c.releases = append(c.releases, release)
	if err != nil {
		return 0, err
	}
	c.request.Arrays = append(c.request.Arrays, a)
	return len(c.request.Arrays) - 1, nil
}

// lend lends the program memory that is mapped here: of another program, or its own, which has no object for the view.
// over takes the place of release, which gives the memory back.
func (c *carrier) lend(v *core.View, m core.Memory, a *calls.Argument, release func()) (over func(), err error) {
	file, err := leases.Lendable(c.ctx, m)
	if file == nil && err == nil {
		err = &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("memory of %v is not the host's", v.Device()),
			Remedy: "copy it into an array of Session.New, and pass that",
		}
	}
	if err == nil {
		a.Segment, err = c.session.space.Segment(c.ctx, file, v.Writable())
	}
	if err == nil {
		a.Word, over, err = c.session.space.Lend(release)
	}
	return over, err
}
