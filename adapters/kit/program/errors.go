package program

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// arrayWord stands in the remedies of quirks for the name of the array that was asked for.
const arrayWord = "{array}"

// about says what was tried, on what, and by whom, in front of an error.
func about(op, name, adapter string, err error) error {
	if err == nil {
		return nil
	}
	e := core.Error{Kind: kindOf(err), Err: err}
	if inner, ok := errors.AsType[*core.Error](err); ok && error(inner) == err { //nolint:errorlint // the very same
		e = *inner
	}
	e.Op, e.Array, e.Adapter = op, cmp.Or(name, e.Array), cmp.Or(e.Adapter, adapter)
	if e.Array != "" {
		e.Remedy = strings.ReplaceAll(e.Remedy, arrayWord, e.Array)
	}
	return &e
}

// kindOf finds the category of an error that may have none.
func kindOf(err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Kind != nil {
		return e.Kind
	}
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded, core.ErrPython} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return core.ErrUnavailable
}
