//go:build !cuda

package cuda

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestAHostWithoutCUDASaysSo(t *testing.T) {
	t.Parallel()
	_, stream := NewStream(0)
	_, module := LoadModule(t.Context(), 0, nil)
	for what, err := range map[string]error{"NewStream": stream, "LoadModule": module} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v, want one that matches ErrUnsupported", what, err)
		}
	}
}
