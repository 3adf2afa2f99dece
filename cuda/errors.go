package cuda

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// failed says what was tried, on what, when the driver refused.
func failed(op, object string, err error) error { return driver.Explain(op, object, err) }

// wrongPointer says what is the matter with an address that was inspected.
func wrongPointer(addr uintptr, format string, args ...any) *core.Error {
	return &core.Error{
		Op: "inspect", Object: fmt.Sprintf("%#x", addr), Kind: core.ErrPointer, Err: fmt.Errorf(format, args...),
	}
}

// about is failed for an error of a lower layer, which does not know what it is about.
func about(op, array string, err error) error {
	e, ok := errors.AsType[*core.Error](failed(op, array, err))
	if !ok {
		return err
	}
	named := *e
	named.Op, named.Object = op, array
	return &named
}
