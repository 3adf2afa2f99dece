package hostplugin

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Result is what a function has returned. All methods are safe for concurrent use. The caller closes it.
type Result struct {
	name     string
	form     []byte
	views    []*core.View
	retained int
	done     func() // lets go of the arguments, which the views may show; nil: they do not

	close    sync.Once
	closeErr error
}

// View is the array that the function has returned; nil if it has returned anything else. It is the result's: it is
// open until Close.
func (r *Result) View() *core.View {
	var v *core.View
	if values.Decode(r.form, &v, r.array) != nil {
		return nil
	}
	return v
}

// Views are all arrays in the result, in their order. They are the result's, as that of View.
func (r *Result) Views() []*core.View { return append([]*core.View(nil), r.views...) }

// Value gives the result as nil, bool, int64, *big.Int, float64, complex128, string, []byte, []any (list), map[string]any or,
// with keys that are not strings, map[any]any (dict), or *core.View; and as [Tuple], [Set], [FrozenSet], [Record] or [Dict] where Python has those.
func (r *Result) Value() (any, error) {
	v, err := values.Value(r.form, r.array)
	return v, r.fail(err)
}

// Decode puts the result into what into points to: a number, a string, a slice, a map, a struct whose fields are named
// by the tag `python:"name"` or by their own name, in any case of letters, a *core.View. The error says what does not fit, and where.
func (r *Result) Decode(into any) error { return r.fail(values.Decode(r.form, into, r.array)) }

// Retained tells of how many of the call's arrays objects of the program still use the memory when the call is over: because the
// function has kept them, in a list, in a closure, in another array; because another call has, or still runs with them; or because a
// result shows them, this one or an earlier one that is open. Their memory is not used again before the program drops these objects.
func (r *Result) Retained() int { return r.retained }

// Close closes the arrays in the result. It is idempotent.
func (r *Result) Close() error {
	r.close.Do(func() {
		var errs []error
		for _, v := range r.views {
			if v == nil {
				continue // a caller in a batch has it
			}
			errs = append(errs, v.Close())
		}
		r.closeErr = errors.Join(errs...)
		if r.done != nil {
			r.done()
		}
	})
	return r.closeErr
}

func (r *Result) array(i int) (*core.View, error) {
	if i < 0 || i >= len(r.views) || r.views[i] == nil {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("array %d of %d", i, len(r.views))}
	}
	return r.views[i], nil
}

func (r *Result) fail(err error) error { return named("result", r.name, values.Located("result", err)) }

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
func (r *Result) split(n int) ([]*Result, error) {
	rows := make([]*Result, n)
	var open atomic.Int64 // the rows, and this
	open.Store(int64(n) + 1)
	done := r.done
	if done != nil {
		r.done = func() {
			if open.Add(-1) == 0 {
				done()
			}
		}
	}
	for i := range rows {
		rows[i] = &Result{name: r.name, retained: r.retained, done: r.done}
	}
	forms, err := values.Split(r.form, n, func(number, row int, whole bool) (int, error) {
		v, err := r.array(number)
		switch {
		case err != nil:
		case whole:
			r.views[number] = nil
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
	for i := range forms {
		rows[i].form = forms[i]
	}
	err = r.fail(err)
	if err = errors.Join(err, r.Close()); err == nil { // the rows keep its memory
		return rows, nil
	}
	for _, row := range rows {
		err = errors.Join(err, row.Close())
	}
	return nil, err
}
