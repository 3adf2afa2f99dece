package driver

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
)

// Explain says what was tried, on what, when the driver refused. An error that says so already stays as
// it is.
func Explain(op, object string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	e := &core.Error{Op: op, Array: object, Kind: core.ErrUnavailable, Err: err}
	if d, ok := errors.AsType[*Error](err); ok {
		e.Kind = d.Kind()
	}
	return e
}
