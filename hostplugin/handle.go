package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Handle lets the program call a function of the host's, as ndbridge.host.name(...), from any of its threads. What handler returns is
// the result there. A later call of Handle with the same name replaces the handler.
//
// Arguments and results are those of [Func.Call]: plain values, arrays of the program as arguments, and arrays of the host's memory
// ([Session.New], a [Pool]) as results. Views that a handler returns stay its own, and may be closed when its ctx has ended: context.AfterFunc(ctx, ...)
// is the place for that. An error of the handler, or a panic, is an ndbridge.HostError in the program, with its text.
//
// Handlers run at once, each on a goroutine of its own: 32 of them, and further calls of the program wait. ctx ends when the program does not wait for the
// result any more: because the function that called was cancelled, for a signal, or because the session is over. Calls that the handler makes
// with ctx ([Func.Call] and the like) run on the very thread that waits for it, so the two never wait for each other.
//
// name is an identifier that does not begin with "_". The error wraps core.ErrConfig, core.ErrUnsupported (the plugin calls no functions),
// core.ErrUnavailable or core.ErrClosed.
func (s *Session) Handle(name string, handler func(ctx context.Context, args Args) (any, error)) error {
	const op = "handle"
	if !handlerName().MatchString(name) || handler == nil {
		return s.wrap(op, name, &core.Error{
			Kind: core.ErrConfig, Err: errors.New("a handler and a name are wanted"), Remedy: `name it with letters, digits and "_", and a letter at first`,
		})
	}
	ctx := context.Background() // the session's end ends the calls
	if err := s.callable(ctx, op, name); err != nil {
		return err
	}
	c := &s.callbacks
	c.offering.Lock()
	defer c.offering.Unlock()
	if err := s.listen(ctx); err != nil { // before the program can call
		return s.failed(ctx, op, name, err)
	}
	c.mu.Lock()
	if c.handlers == nil {
		c.handlers = make(map[string]func(context.Context, Args) (any, error))
	}
	c.handlers[name] = handler
	names := slices.Collect(maps.Keys(c.handlers))
	c.mu.Unlock()
	form, err := values.Append(nil, names, nil)
	if err != nil {
		return s.wrap(op, name, err)
	}
	return s.call(ctx, op, name, &calls.Request{Op: calls.OpOffer, Values: form}, new(calls.Answer))
}

func handlerName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`) }

// Args are the arguments of a call of the program's. Its views are the program's own arrays, open until the handler returns.
type Args struct {
	all        *returned
	positional [][]byte
	keywords   []byte
}

// Len is the number of arguments, keyword arguments aside.
func (a Args) Len() int { return len(a.positional) }

// Decode puts the arguments, keyword arguments aside, into what each of into points to, as [Result.Decode] does. There must be as many.
func (a Args) Decode(into ...any) error {
	if len(into) != len(a.positional) {
		return &core.Error{
			Op: "arguments", Object: a.all.name, Kind: core.ErrConfig, Err: fmt.Errorf("expected %d arguments, got %d", len(into), len(a.positional)),
		}
	}
	for i := range into {
		if err := values.Decode(a.positional[i], into[i], a.all.array); err != nil {
			return a.fail(values.Located("arguments", values.At(values.Index(i), err)))
		}
	}
	return nil
}

// Keywords puts the keyword arguments into what into points to: a map, or a struct with fields of these names. A field without an argument
// stays as it is.
func (a Args) Keywords(into any) error {
	return a.fail(values.Located("keyword arguments", values.Decode(a.keywords, into, a.all.array)))
}

func (a Args) fail(err error) error { return named("arguments", a.all.name, err) }

// parse takes the arguments of a call apart.
func parse(all *returned) (Args, error) {
	a := Args{all: all}
	r := values.NewReader(all.answer.Values)
	part := func() ([]byte, error) {
		from := r.At()
		err := r.Skip()
		return r.Form()[from:r.At()], err
	}
	if _, err := r.Next(); err != nil {
		return a, err
	}
	name, err := part()
	if err != nil {
		return a, err
	}
	if err := values.Decode(name, &all.name, nil); err != nil {
		return a, err
	}
	list, err := r.Next()
	if err != nil {
		return a, err
	}
	a.positional = make([][]byte, list.Items())
	for i := range a.positional {
		if a.positional[i], err = part(); err != nil {
			return a, err
		}
	}
	a.keywords, err = part()
	return a, errors.Join(err, r.End())
}

// callbacks are the functions of the host's that a program calls.
type callbacks struct {
	offering sync.Mutex // held by Handle

	ctx  context.Context //nolint:containedctx // the session's own life
	over context.CancelCauseFunc

	mu       sync.Mutex
	handlers map[string]func(context.Context, Args) (any, error)
	lanes    int
	waiting  int // lanes that wait for a call
	running  map[uint64]context.CancelFunc
	givenUp  map[uint64]struct{} // calls that nobody waits for any more, and that do not run yet
}

func (c *callbacks) begin() {
	c.ctx, c.over = context.WithCancelCause(context.Background())
	c.running, c.givenUp = make(map[uint64]context.CancelFunc), make(map[uint64]struct{})
}

func (c *callbacks) end(why error) { c.over(why) }

// callbackKey is the key of the callback in the context of a handler.
type callbackKey struct{}

// callback is a call of the program's that a handler answers.
type callback struct {
	session *Session
	lane    *calls.Lane
	turn    chan struct{} // has room for one: who uses the lane
	over    bool          // whoever has the turn may read and write it
}

// take gives the lane, for a call within the callback; nil if that is over. done gives it back.
func (c *callback) take(ctx context.Context) (done func()) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil // the call says why it does not begin
	}
	done = func() { <-c.turn }
	if c.over {
		done()
		return nil
	}
	return done
}

// listen sees to it that a lane waits for the program's next call, as long as there may be more.
func (s *Session) listen(ctx context.Context) error {
	c := &s.callbacks
	c.mu.Lock()
	more := c.waiting == 0 && c.lanes < calls.MaxLanes
	if more {
		c.lanes++
		c.waiting++
	}
	c.mu.Unlock()
	if !more {
		return nil
	}
	lane, err := s.calls.Lane(ctx)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lanes--
		c.waiting--
		return err
	}
	go s.carry(lane) //nolint:contextcheck // a lane outlives the call that is made for it
	return nil
}

// carry answers calls of the program's on a lane, until the session ends.
func (s *Session) carry(lane *calls.Lane) {
	c := &s.callbacks
	for {
		var a calls.Answer
		if err := lane.Call(context.Background(), &calls.Request{Op: calls.OpAwait}, &a); err != nil {
			s.noLane(err)
			return
		}
		c.mu.Lock()
		if a.Kind == calls.Over { // nobody waits for that one any more
			if cancel := c.running[a.Target]; cancel != nil {
				cancel()
			} else {
				c.givenUp[a.Target] = struct{}{} // another lane is just about to run it
			}
			c.mu.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(c.ctx)
		if _, gone := c.givenUp[a.Target]; gone {
			cancel()
		}
		c.running[a.Target] = cancel
		c.waiting--
		c.mu.Unlock()
		if err := s.listen(c.ctx); err != nil {
			s.noLane(err)
		}
		carry := s.handle(ctx, cancel, lane, &a)
		c.mu.Lock()
		delete(c.running, a.Target)
		delete(c.givenUp, a.Target)
		c.mu.Unlock()
		err := lane.Call(context.Background(), carry.sent(), new(calls.Answer))
		carry.done()
		if err != nil {
			s.noLane(err)
			return
		}
		c.mu.Lock()
		c.waiting++
		c.mu.Unlock()
	}
}

// noLane logs why there is a lane less, unless the session has ended.
func (s *Session) noLane(err error) {
	if !errors.Is(err, calls.ErrClosed) && s.alive("", "") == nil {
		s.host.log.Error("the program cannot call the host as often at once any more",
			slog.String("program", s.launch.program.Name), slog.Any("cause", err))
	}
}

// handle lets a handler answer a call, and makes the request with the result.
func (s *Session) handle(ctx context.Context, cancel context.CancelFunc, lane *calls.Lane, a *calls.Answer) *carrier {
	carry := s.carrier(ctx)
	r := &carry.request
	r.Op, r.Target = calls.OpReturn, a.Target
	call := &callback{session: s, lane: lane, turn: make(chan struct{}, 1)}
	args := &returned{session: s, name: "arguments", answer: *a} // not used again, since a handler may keep Args
	args.array = args.at
	result, err := s.answer(context.WithValue(ctx, callbackKey{}, call), args)
	if err == nil {
		r.Values, err = values.Append(r.Values, result, carry.add)
		err = values.Located("result", err)
	}
	if err != nil {
		r.Flags |= calls.FlagFailed
		r.Arrays = r.Arrays[:0]
		r.Values, _ = values.Append(r.Values[:0], err.Error(), nil) // text can always be written
	}
	cancel()
	call.turn <- struct{}{}
	call.over = true
	<-call.turn
	if err := args.close(0); err != nil {
		s.host.log.Warn("memory could not be unmapped", slog.String("program", s.launch.program.Name), slog.Any("cause", err))
	}
	return carry
}

// answer calls the handler.
func (s *Session) answer(ctx context.Context, all *returned) (result any, err error) {
	if err := all.openViews(ctx, "an argument"); err != nil {
		return nil, err
	}
	args, err := parse(all)
	if err != nil {
		return nil, err
	}
	name := all.name
	s.callbacks.mu.Lock()
	handler := s.callbacks.handlers[name]
	s.callbacks.mu.Unlock()
	if handler == nil {
		return nil, fmt.Errorf("the host has no function %q", name)
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("%s: panic: %v", name, p)
			s.host.log.Error("a handler panicked", slog.String("program", s.launch.program.Name), slog.String("handler", name),
				slog.Any("cause", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	return handler(ctx, args)
}
