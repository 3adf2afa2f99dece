//go:build !cuda

package cuda

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func TestAHostWithoutCUDASaysSo(t *testing.T) {
	t.Parallel()
	i := NewImporter(nil)
	_, _, memory := i.Memory(t.Context(), contract.Lease{Handle: contract.CUDAIPC{ID: 1, Size: 1}}, nil)
	_, stream := NewStream(0)
	_, module := LoadModule(t.Context(), 0, nil)
	for what, err := range map[string]error{"Memory": memory, "NewStream": stream, "LoadModule": module} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v, want one that matches ErrUnsupported", what, err)
		}
	}
	i.Lost(nil)
	if err := errors.Join(i.Close(), i.Close()); err != nil {
		t.Error(err)
	}
}
