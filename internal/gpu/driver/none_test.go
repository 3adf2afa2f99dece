//go:build !cuda

package driver

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestWithoutTheTagNothingIsSupported(t *testing.T) {
	t.Parallel()
	if Active() {
		t.Error("CUDA is active")
	}
	_, count := DeviceCount()
	for what, err := range map[string]error{
		"Init": Init(), "DeviceCount": count, "With": With(0, func() error { return nil }),
	} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v, want one that matches ErrUnsupported", what, err)
		}
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Remedy == "" {
			t.Errorf("%s: %v has no remedy", what, err)
		}
	}
}
