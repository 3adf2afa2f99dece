//go:build cuda

package driver

/*
#cgo CFLAGS: -Wno-deprecated-declarations
#include <cuda.h>

// Of the library of stubs: see stub/stub.h.
CUresult ndbridge_cuInit(unsigned int flags);
int ndbridge_cuda_active(void);
const char *ndbridge_cuda_reason(void);
*/
import "C"

import (
	"reflect"
	"sync"
)

// Init loads the driver and initialises CUDA in this process, once: later calls return the same error.
// A process that has initialised CUDA must not use it after a fork.
func Init() error { return initialise() }

// A process has one driver.
var initialise = sync.OnceValue(func() error { //nolint:gochecknoglobals // see above
	return result("cuInit", C.ndbridge_cuInit(0))
})

// Active reports whether any code in this process has initialised CUDA. It neither loads nor
// initialises the driver.
func Active() bool { return C.ndbridge_cuda_active() != 0 }

// DriverVersion returns the newest CUDA version that the driver supports, as 12040 for 12.4. It needs
// no Init.
func DriverVersion() (int, error) {
	var version C.int
	err := result("cuDriverGetVersion", C.cuDriverGetVersion(&version))
	return int(version), err
}

// result converts the result of a call to an error.
func result(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return newError(call, Code(r))
}

// failed converts an error of gorgonia.org/cu.
func failed(call string, err error) error {
	if err == nil {
		return nil
	}
	return newError(call, codeOf(err))
}

// pending converts "not ready" to false.
func pending(call string, err error) (done bool, _ error) {
	if err != nil && codeOf(err) == NotReady {
		return false, nil
	}
	return err == nil, failed(call, err)
}

// codeOf reads the code from cu's error, whose type has no name outside that package.
func codeOf(err error) Code { return Code(reflect.ValueOf(err).Int()) }

func newError(call string, code Code) *Error {
	e := &Error{Call: call, Code: code, Name: "CUDA_ERROR_UNKNOWN", Text: "unknown error"}
	if code == StubLibrary {
		e.Name, e.Text = "CUDA_ERROR_STUB_LIBRARY", "the driver answers as a stub"
		if reason := C.GoString(C.ndbridge_cuda_reason()); reason != "" {
			e.Text = reason
		}
		return e
	}
	var text *C.char
	if C.cuGetErrorName(C.CUresult(code), &text) == C.CUDA_SUCCESS {
		e.Name = C.GoString(text)
	}
	if C.cuGetErrorString(C.CUresult(code), &text) == C.CUDA_SUCCESS {
		e.Text = C.GoString(text)
	}
	return e
}
