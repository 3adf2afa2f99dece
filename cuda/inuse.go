package cuda

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// InUse says why no memory of a GPU can be in this process: nil if CUDA is [Active]. It does not
// initialise CUDA. The error wraps [core.ErrUnsupported] if this binary has no CUDA, and
// [core.ErrDevice] if nobody in the process has initialised it.
func InUse() error {
	switch {
	case Active():
		return nil
	case !driver.Built:
		return driver.Init() // the reason and the remedy
	default:
		return &core.Error{
			Op: "cuda", Kind: core.ErrDevice,
			Err:    errors.New("the program has not initialised CUDA, so that it has no memory of a GPU"),
			Remedy: "make the array in the program itself, with a framework that uses CUDA",
		}
	}
}
