//go:build !cuda

package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestABinaryWithoutCUDASaysSo(t *testing.T) {
	t.Parallel()
	_, devices := Devices()
	_, inspect := Inspect(0x1000, 1)
	for what, err := range map[string]error{"Available": Available(), "Devices": devices, "Inspect": inspect} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v, want one that matches ErrUnsupported", what, err)
			continue
		}
		for _, want := range []string{"built without CUDA", "tag cuda"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", what, err, want)
			}
		}
	}
	if Active() {
		t.Error("CUDA is active in a binary without it")
	}
}
