package driver

import (
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// Code is a CUresult: why a call of the driver failed.
type Code int

// The codes that this module distinguishes, under the driver's names.
const (
	InvalidValue             Code = 1
	OutOfMemory              Code = 2
	NotInitialized           Code = 3
	StubLibrary              Code = 34
	NoDevice                 Code = 100
	InvalidDevice            Code = 101
	InvalidImage             Code = 200
	InvalidContext           Code = 201
	AlreadyMapped            Code = 208
	NoBinaryForGPU           Code = 209
	PeerAccessUnsupported    Code = 217
	InvalidPTX               Code = 218
	UnsupportedPTXVersion    Code = 222
	OperatingSystem          Code = 304
	InvalidHandle            Code = 400
	NotFound                 Code = 500
	NotReady                 Code = 600
	IllegalAddress           Code = 700
	LaunchOutOfResources     Code = 701
	ContextIsDestroyed       Code = 709
	AlreadyRegistered        Code = 712
	NotRegistered            Code = 713
	NotPermitted             Code = 800
	NotSupported             Code = 801
	SystemDriverMismatch     Code = 803
	CompatNotSupported       Code = 804
	StreamCaptureUnsupported Code = 900
	Unknown                  Code = 999
)

// categories maps codes to the categories of package core. All other codes are ErrUnavailable: the
// driver, the device or the context is gone, or has no room.
var categories = map[Code]error{
	InvalidValue:             core.ErrPointer,
	StubLibrary:              core.ErrUnsupported,
	NoDevice:                 core.ErrUnsupported,
	InvalidDevice:            core.ErrDevice,
	InvalidImage:             core.ErrConfig,
	NoBinaryForGPU:           core.ErrConfig,
	PeerAccessUnsupported:    core.ErrDevice,
	InvalidPTX:               core.ErrConfig,
	UnsupportedPTXVersion:    core.ErrVersion,
	InvalidHandle:            core.ErrPointer,
	NotFound:                 core.ErrNotFound,
	LaunchOutOfResources:     core.ErrConfig,
	AlreadyRegistered:        core.ErrPointer,
	NotRegistered:            core.ErrPointer,
	NotPermitted:             core.ErrUnsupported,
	NotSupported:             core.ErrUnsupported,
	SystemDriverMismatch:     core.ErrVersion,
	CompatNotSupported:       core.ErrVersion,
	StreamCaptureUnsupported: core.ErrUnsupported,
}

// Error is a failed call of the driver.
type Error struct {
	Call string // "cuIpcOpenMemHandle"
	Code Code
	Name string // the code's name: "CUDA_ERROR_INVALID_HANDLE"
	Text string // what the driver says about the code, or the loader about the driver
}

// Error returns call, name, number and text.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, int(e.Code), e.Text)
}

// Kind returns the code's category of package core.
func (e *Error) Kind() error {
	if kind, ok := categories[e.Code]; ok {
		return kind
	}
	return core.ErrUnavailable
}

// Is makes an Error match its category.
func (e *Error) Is(target error) bool { return target == e.Kind() }
