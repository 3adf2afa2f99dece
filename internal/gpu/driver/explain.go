package driver

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
)

// remedies tell users what to do about a code, whatever the operation.
var remedies = map[Code]string{
	OutOfMemory:    "free memory of the GPU, or close views of it",
	NoBinaryForGPU: "compile the code for this GPU, or give its PTX text",
	IllegalAddress: "a kernel wrote to a view that is not writable, or reached beyond its memory; " +
		"mend the kernel, and start the host again: its CUDA context is broken",
	UnsupportedPTXVersion: "update the NVIDIA driver, or compile the PTX text for an older version",
}

// Explain adds the operation and its object to an error of the driver. It returns a *core.Error
// unchanged.
func Explain(op, object string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	e := &core.Error{Op: op, Object: object, Kind: core.ErrUnavailable, Err: err}
	if d, ok := errors.AsType[*Error](err); ok {
		e.Kind, e.Remedy = d.Kind(), remedies[d.Code]
	}
	return e
}
