package hostplugin

import (
	"cmp"
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
func (s *Session) Value(ctx context.Context, name string) (Result, error) {
	const op = "value"
	form, err := values.Append(nil, name, nil)
	if err != nil {
		return Result{}, s.wrap(op, name, err)
	}
	return s.result(ctx, op, name, &calls.Request{Op: calls.OpValue, Values: form})
}

// Set gives a name of the program's a value, as an assignment does there: to a global name, which need not exist, to an
// attribute, or to an item. The value is what an argument of [Func.Call] can be, and arrives as that would; arrays
// become arrays over the same memory, of what [As] or [Program].Arguments says, which the program keeps for as long as it uses them. What the name leads
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
	carry.request.Op, carry.request.Framework = calls.OpSet, cmp.Or(as.framework, s.launch.program.Arguments)
	var err error
	if carry.request.Values, err = values.Append(carry.request.Values, contract.Tuple{name, value}, carry.add); err != nil {
		return s.unsent(op, name, "(name, value)", err)
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
	if errors.Is(err, calls.ErrStuck) {
		select {
		case s.stuck <- fmt.Errorf("%s still ran %v after its call had been given up, and the host ended %s", name, s.calls.Patience, s.calls.Ends):
		default: // another one was, too
		}
	}
	return s.failed(ctx, op, name, err)
}

// failed gives an error of a request its name. Of one that finds the program gone, or about to go, the end of the session is the reason, if
// that has ended.
func (s *Session) failed(ctx context.Context, op, name string, err error) error {
	if errors.Is(err, calls.ErrClosed) {
		return s.unavailableNow(ctx, op, name)
	}
	if e, ok := errors.AsType[*core.Error](err); ok && errors.Is(e.Kind, core.ErrUnavailable) {
		if gone := s.alive(op, name); gone != nil {
			return gone
		}
	}
	return s.wrap(op, name, err)
}

// unsent gives an error of what was to be sent its place. If the session has ended, that is why there is no memory for arrays any more.
func (s *Session) unsent(op, name, place string, err error) error {
	if gone := s.alive(op, name); gone != nil {
		return gone
	}
	return s.wrap(op, name, values.Located(place, err))
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
	return s.wrap(op, name, &core.Error{Kind: core.ErrUnavailable, Err: errors.New("the program serves no more calls")})
}

// result makes a request and opens what comes back: what is on a GPU while the GPU still works, which nobody has before that is done. It is
// the zero Result, without an error, if a generator has no more.
func (s *Session) result(ctx context.Context, op, name string, r *calls.Request) (Result, error) {
	o := s.returned(name)
	o.ctx, o.op = ctx, op
	if r.OnGPU() {
		r.Early = o.early
	}
	err := s.call(ctx, op, name, r, &o.answer)
	over := err == nil && o.answer.Kind == calls.Over
	if err == nil && !over && !o.opened {
		o.open(o.answer)
	}
	if o.ctx = nil; err == nil {
		err = o.err
	}
	result := o.result()
	if err == nil && !over {
		return result, nil
	}
	if unmapped := result.Close(); unmapped != nil {
		err = errors.Join(err, unmapped)
	}
	return Result{}, err
}
