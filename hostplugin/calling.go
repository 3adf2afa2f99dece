package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Value gives the value that a name of the program's has now, as a function's result: `lr`, `model.training`, `losses[-1]`.
// It waits for a name that does not exist yet. A single array is better looked at with [Session.View]; Value is for the
// rest, also for arrays within lists and dicts. The caller closes the result. The error wraps core.ErrNotFound,
// core.ErrUnsupported (the value cannot cross; the text says what in it), core.ErrPython, core.ErrUnavailable,
// core.ErrClosed, or the error of ctx.
func (s *Session) Value(ctx context.Context, name string) (*Result, error) {
	const op = "value"
	form, err := values.Append(nil, name, nil)
	if err != nil {
		return nil, s.wrap(op, name, err)
	}
	return s.result(ctx, op, name, &calls.Request{Op: calls.OpValue, Values: form})
}

// Set gives a name of the program's a value, as an assignment does there: to a global name, which need not exist, to an
// attribute, or to an item. The value is what an argument of [Func.Call] can be, and arrives as that would; arrays
// become arrays over the same memory, of NumPy or of what [As] says, which the program keeps for as long as it uses them. What the name leads
// through must exist: Set waits for nothing. The errors are those of Value.
func (s *Session) Set(ctx context.Context, name string, value any, opts ...FuncOption) error {
	const op = "set"
	if err := s.callable(ctx, op, name); err != nil {
		return err
	}
	var as Func
	for _, o := range opts {
		o.applyFunc(&as)
	}
	carry := s.carrier(ctx)
	defer carry.done()
	carry.request.Op, carry.request.Framework = calls.OpSet, as.framework
	var err error
	if carry.request.Values, err = values.Append(carry.request.Values, values.Tuple{name, value}, carry.add); err != nil {
		return s.wrap(op, name, values.Located("(name, value)", err))
	}
	return s.call(ctx, op, name, carry.sent(), new(calls.Answer))
}

// openCalls makes functions callable, if the plugin serves calls.
func (s *Session) openCalls(ctx context.Context) error {
	room := &arrays.Room{Open: s.leases.Open, Stray: s.leases.Stray, Over: s.leases.Pending}
	client, err := s.conn.Client.OpenCalls(ctx, room, s.launch.program.calls())
	if errors.Is(err, core.ErrUnavailable) {
		return nil // a program that has ended already says why to who calls
	}
	if client == nil || err != nil {
		return err
	}
	s.space = arrays.NewSpace(s.conn.Client, client.Held)
	room.Space = s.space
	client.Patience, client.Ends = s.launch.program.patience(), s.launch.ends()
	s.calls = client
	s.callbacks.begin()
	go func() {
		<-s.gone
		s.callbacks.end(s.Err())
		s.space.Close()
		if err := s.calls.Close(); err != nil {
			s.host.log.Warn("memory could not be unmapped", slog.String("program", s.launch.program.Name), slog.Any("cause", err))
		}
		close(s.noCalls)
	}()
	return nil
}

// callable reports why nothing can be called.
func (s *Session) callable(ctx context.Context, op, name string) error {
	if err := s.ready(ctx, op, name); err != nil {
		return err
	}
	if s.calls != nil {
		return nil
	}
	return s.wrap(op, name, &core.Error{
		Kind: core.ErrUnsupported, Err: errors.New("there is no shared memory for calls"),
		Remedy: "leave handoff on, and use a plugin of this version",
	})
}

// call sends a request and waits for the answer. Errors have the name.
func (s *Session) call(ctx context.Context, op, name string, r *calls.Request, a *calls.Answer) error {
	if err := s.callable(ctx, op, name); err != nil {
		if r.Over != nil {
			r.Over()
		}
		return err
	}
	err := s.exchange(ctx, r, a)
	if errors.Is(err, calls.ErrClosed) {
		err = s.unavailableNow(ctx, op, name)
	}
	if errors.Is(err, calls.ErrStuck) {
		select {
		case s.stuck <- fmt.Errorf("%s still ran %v after its call had been given up, and the host ended %s", name, s.calls.Patience, s.calls.Ends):
		default: // another one was, too
		}
	}
	return s.wrap(op, name, err)
}

// exchange sends a request by a worker, or, if ctx is that of a handler, to the thread that waits for its result.
func (s *Session) exchange(ctx context.Context, r *calls.Request, a *calls.Answer) error {
	if c, ok := ctx.Value(callbackKey{}).(*callback); ok && c.session == s {
		if done := c.take(ctx); done != nil {
			defer done()
			return c.lane.Call(ctx, r, a)
		}
	}
	return s.calls.Call(ctx, r, a)
}

// unavailableNow says why a call found the program gone.
func (s *Session) unavailableNow(ctx context.Context, op, name string) error {
	_ = s.unavailable(ctx) // waits until it is known
	if err := s.alive(op, name); err != nil {
		return err
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: errors.New("the program serves no more calls")}
}

// result makes a request and opens what comes back. It is nil, without an error, if a generator has no more.
func (s *Session) result(ctx context.Context, op, name string, r *calls.Request) (*Result, error) {
	var a calls.Answer
	var early *opening
	if r.OnGPU() {
		early = &opening{session: s, ctx: ctx, op: op, name: name}
		r.Early = early.do
	}
	err := s.call(ctx, op, name, r, &a)
	switch {
	case early != nil && early.done:
		if err != nil {
			return nil, early.undo(err)
		}
		return early.result, early.err
	case err != nil:
		return nil, err
	case a.Kind == calls.Over:
		return nil, nil //nolint:nilnil // as said
	}
	return s.opened(ctx, op, name, &a)
}

// opening opens what comes back from a GPU while that still works. Nobody has the result before the work is done.
type opening struct {
	session  *Session
	ctx      context.Context //nolint:containedctx // of the one call
	op, name string

	done   bool
	result *Result
	err    error
}

func (o *opening) do(a calls.Answer) {
	o.done = true
	o.result, o.err = o.session.opened(o.ctx, o.op, o.name, &a)
}

// undo closes the result of a call that has failed.
func (o *opening) undo(err error) error {
	if o.result == nil {
		return err
	}
	return errors.Join(err, o.result.Close())
}

// opened opens what an answer has.
func (s *Session) opened(ctx context.Context, op, name string, a *calls.Answer) (*Result, error) {
	shown := name
	if op == "call" && len(a.Leases) > 0 {
		shown += "()"
	}
	out := &Result{name: name, form: a.Values, retained: int(a.Retained)}
	if err := s.open(ctx, shown, out, a.Leases); err != nil {
		return nil, s.wrap(op, name, err)
	}
	return out, nil
}

// open opens views of what leases are on, which shown names, as those of a result. After an error none is open.
func (s *Session) open(ctx context.Context, shown string, r *Result, leases []contract.Lease) error {
	r.views = make([]*core.View, 0, len(leases))
	for i := range leases {
		v, err := s.leases.Open(context.WithoutCancel(ctx), shown, leases[i])
		if err != nil {
			for _, rest := range leases[i+1:] {
				s.leases.Stray(rest.ID)
			}
			return errors.Join(err, r.Close())
		}
		r.views = append(r.views, v)
	}
	return nil
}
