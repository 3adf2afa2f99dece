package hostplugin

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/values"
)

// Result is what a function has returned. All methods are safe for concurrent use. The caller closes it.
type Result struct {
	name     string
	form     []byte
	views    []*core.View
	retained int

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
// with keys that are not strings, map[any]any (dict), or *core.View, and values of package values' types for tuples and the like.
func (r *Result) Value() (any, error) {
	v, err := values.Value(r.form, r.array)
	return v, r.fail(err)
}

// Decode puts the result into what into points to: a number, a string, a slice, a map, a struct whose fields are named
// by the tag `python:"name"` or by their own name, a *core.View. The error says what does not fit, and where.
func (r *Result) Decode(into any) error { return r.fail(values.Decode(r.form, into, r.array)) }

// Retained tells how many of the call's arrays the program has kept: in a list, in a closure, in another array. Their
// memory is not used again before the program drops them.
func (r *Result) Retained() int { return r.retained }

// Close closes the arrays in the result. It is idempotent.
func (r *Result) Close() error {
	r.close.Do(func() {
		var errs []error
		for _, v := range r.views {
			errs = append(errs, v.Close())
		}
		r.closeErr = errors.Join(errs...)
	})
	return r.closeErr
}

func (r *Result) array(i int) (*core.View, error) {
	if i < 0 || i >= len(r.views) {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("array %d of %d", i, len(r.views))}
	}
	return r.views[i], nil
}

func (r *Result) fail(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	about := *e
	about.Op, about.Object = "result", r.name
	return &about
}
