package driver

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestErrorsMatchOneCategory(t *testing.T) {
	t.Parallel()
	for code, want := range map[Code]string{
		InvalidValue: "invalid pointer", OutOfMemory: "unavailable", NotInitialized: "unavailable",
		StubLibrary: "unsupported operation", NoDevice: "unsupported operation",
		InvalidDevice: "wrong device", InvalidContext: "unavailable", InvalidPTX: "bad configuration",
		UnsupportedPTXVersion: "incompatible version", InvalidHandle: "invalid pointer",
		NotFound: "not found", NotSupported: "unsupported operation", NotPermitted: "unsupported operation",
		SystemDriverMismatch: "incompatible version", StreamCaptureUnsupported: "unsupported operation",
		700: "unavailable", 719: "unavailable", 999: "unavailable", // the context is lost; nobody knows
	} {
		err := &Error{Call: "cuCall", Code: code}
		if got := core.Category(err); got != want {
			t.Errorf("code %d: category %q, want %q", code, got, want)
		}
		if !errors.Is(err, err.Kind()) {
			t.Errorf("code %d does not match its own category %v", code, err.Kind())
		}
	}
}

func TestErrorsKeepCallNameNumberAndText(t *testing.T) {
	t.Parallel()
	err := &Error{
		Call: "cuIpcOpenMemHandle", Code: InvalidHandle, Name: "CUDA_ERROR_INVALID_HANDLE",
		Text: "invalid resource handle",
	}
	const want = "cuIpcOpenMemHandle: CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle"
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
