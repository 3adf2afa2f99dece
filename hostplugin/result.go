package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Result is what a function has returned. It is a small value, and a copy of it is the same result. All methods are safe for concurrent
// use. The caller closes it, once for all copies.
//
// Close gives its memory to later results, so a Result that is closed has nothing: not what it had, nor what another has. What Value,
// Decode, View and Views have given stays what it was; the views are closed. The zero Result is a closed one.
type Result struct {
	of       *returned
	number   uint64 // of is this result's as long as it has that number
	retained int
}

// returned is what a Result stands on, one after the other.
type returned struct {
	session *Session
	recycle bool // it is used again when it was closed
	name    string
	answer  calls.Answer // its Values are the result
	views   []*core.View // of its Leases
	done    func()       // lets go of the arguments, which the views may show; nil: they do not
	array   func(i int) (*core.View, error)
	early   func(a calls.Answer)

	// Of the request, until there is a Result.
	ctx    context.Context //nolint:containedctx // of the one call
	op     string
	opened bool // there was an answer, and err says whether it could be opened
	err    error

	mu     sync.RWMutex // read-held by who reads the above for a Result
	number uint64       // grows when it is closed
}

// returned gives one that has nothing, and that nobody else has. Its Result is to be closed.
func (s *Session) returned(name string) *returned {
	o, ok := s.results.Get().(*returned)
	if !ok {
		o = &returned{session: s, recycle: true}
		o.array, o.early = o.at, o.open
	}
	o.name = name
	return o
}

// result is the Result that stands on it.
func (o *returned) result() Result {
	return Result{of: o, number: o.number, retained: int(o.answer.Retained)}
}

// open opens what an answer has.
func (o *returned) open(a calls.Answer) {
	o.opened, o.answer = true, a
	shown := o.name
	if o.op == "call" && len(a.Leases) > 0 {
		shown += "()"
	}
	o.err = o.session.failed(o.ctx, o.op, o.name, o.openViews(o.ctx, shown))
}

// openViews opens views of what the leases are on, which shown names. After an error none is open.
func (o *returned) openViews(ctx context.Context, shown string) error {
	leases := o.answer.Leases
	for i := range leases {
		v, err := o.session.leases.Open(context.WithoutCancel(ctx), shown, leases[i])
		if err != nil {
			for _, rest := range leases[i+1:] {
				o.session.leases.Stray(rest.ID)
			}
			return errors.Join(err, o.closeViews())
		}
		o.views = append(o.views, v)
	}
	return nil
}

func (o *returned) closeViews() error {
	var errs []error
	for _, v := range o.views {
		if v == nil {
			continue // a caller in a batch has it
		}
		errs = append(errs, v.Close())
	}
	return errors.Join(errs...)
}

// showsFile reports whether a view of it is of a file that is mapped.
func (o *returned) showsFile() bool {
	for _, v := range o.views {
		if v.Route() == contract.RouteMappedFile {
			return true
		}
	}
	return false
}

// at gives an array of it.
func (o *returned) at(i int) (*core.View, error) {
	if i < 0 || i >= len(o.views) || o.views[i] == nil {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("array %d of %d", i, len(o.views))}
	}
	return o.views[i], nil
}

func (o *returned) fail(err error) error {
	return named("result", o.name, values.Located("result", err))
}

// close ends the Result of that number, if it has not ended.
func (o *returned) close(number uint64) error {
	o.mu.Lock()
	last := o.number == number
	if last {
		o.number++
	}
	o.mu.Unlock()
	if !last {
		return nil
	}
	// Nobody reads it for a Result any more.
	err := o.closeViews()
	if o.done != nil {
		o.done()
	}
	if !o.recycle {
		return err
	}
	clear(o.views)
	clear(o.answer.Leases)
	form := o.answer.Values[:0]
	if cap(form) > maxKeptForm {
		form = nil
	}
	o.answer = calls.Answer{Leases: o.answer.Leases[:0], Values: form}
	o.views, o.done, o.opened, o.err = o.views[:0], nil, false, nil
	o.session.results.Put(o)
	return err
}

// use gives what a Result stands on; nil if it is closed. The caller unlocks it.
func (r Result) use() *returned {
	if r.of == nil {
		return nil
	}
	r.of.mu.RLock()
	if r.of.number == r.number {
		return r.of
	}
	r.of.mu.RUnlock()
	return nil
}

func closedResult() error {
	return &core.Error{Op: "result", Kind: core.ErrClosed, Err: errors.New("the result was closed")}
}

// View is the array that the function has returned; nil if it has returned anything else, or if the result is closed. It is the result's:
// it is open until Close.
func (r Result) View() *core.View {
	o := r.use()
	if o == nil {
		return nil
	}
	defer o.mu.RUnlock()
	var v *core.View
	if values.Decode(o.answer.Values, &v, o.array) != nil {
		return nil
	}
	return v
}

// Views are all arrays in the result, in their order. They are the result's, as that of View.
func (r Result) Views() []*core.View {
	o := r.use()
	if o == nil {
		return nil
	}
	defer o.mu.RUnlock()
	return append([]*core.View(nil), o.views...)
}

// Value gives the result as nil, bool, int64, *big.Int, float64, complex128, string, []byte, []any (list), map[string]any or,
// with keys that are not strings, map[any]any (dict), or *core.View; and as [Tuple], [Set], [FrozenSet], [Record] or [Dict] where Python has those.
func (r Result) Value() (any, error) {
	o := r.use()
	if o == nil {
		return nil, closedResult()
	}
	defer o.mu.RUnlock()
	v, err := values.Value(o.answer.Values, o.array)
	return v, o.fail(err)
}

// Decode puts the result into what into points to: a number, a string, a slice, a map, a struct whose fields are named
// by the tag `python:"name"` or by their own name, in any case of letters, a *core.View. The error says what does not fit, and where.
func (r Result) Decode(into any) error {
	o := r.use()
	if o == nil {
		return closedResult()
	}
	defer o.mu.RUnlock()
	return o.fail(values.Decode(o.answer.Values, into, o.array))
}

// Retained tells of how many of the call's arrays objects of the program still use the memory when the call is over: because the
// function has kept them, in a list, in a closure, in another array; because another call has, or still runs with them; or because a
// result shows them, this one or an earlier one that is open. Their memory is not used again before the program drops these objects.
func (r Result) Retained() int { return r.retained }

// Close closes the arrays in the result. Further calls do nothing, of copies likewise.
func (r Result) Close() error {
	if r.of == nil {
		return nil
	}
	return r.of.close(r.number)
}

// named gives an error of core's an operation and an object.
func named(op, object string, err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	about := *e
	about.Op, about.Object = op, object
	return &about
}

// split divides the result of a batch among its n rows, and takes it over.
func (r Result) split(n int) ([]Result, error) {
	all := r.of
	var open atomic.Int64 // the rows, and this
	open.Store(int64(n) + 1)
	done := all.done
	if done != nil {
		all.done = func() {
			if open.Add(-1) == 0 {
				done()
			}
		}
	}
	rows := make([]*returned, n)
	for i := range rows {
		rows[i] = all.session.returned(all.name)
		rows[i].answer.Retained, rows[i].done = all.answer.Retained, all.done
	}
	forms, err := values.Split(all.answer.Values, n, func(number, row int, whole bool) (int, error) {
		v, err := all.at(number)
		switch {
		case err != nil:
		case whole:
			all.views[number] = nil
		case len(v.Shape()) == 0:
			err = values.Cannot("an array without axes for a batch of %d rows", n)
		case v.Shape()[0] != n:
			err = values.Cannot("an array of the shape %v for a batch of %d rows", v.Shape(), n)
		default:
			v, err = v.Select(0, row)
		}
		if err != nil {
			return 0, err
		}
		rows[row].views = append(rows[row].views, v)
		return len(rows[row].views) - 1, nil
	})
	err = all.fail(err)
	err = errors.Join(err, r.Close()) // the rows keep its memory
	results := make([]Result, n)
	for i, row := range rows {
		if err == nil {
			row.answer.Values = append(row.answer.Values, forms[i]...)
		}
		results[i] = row.result()
	}
	if err == nil {
		return results, nil
	}
	for _, row := range results {
		err = errors.Join(err, row.Close())
	}
	return nil, err
}
