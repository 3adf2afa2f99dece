package cuda

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// about gives an error of a lower layer the operation and the object that it concerns.
func about(op, object string, err error) error {
	e, ok := errors.AsType[*core.Error](driver.Explain(op, object, err))
	if !ok {
		return err
	}
	named := *e
	named.Op, named.Object = op, object
	return &named
}
