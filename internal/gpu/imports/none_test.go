//go:build !cuda

package imports

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func TestAHostWithoutCUDASaysSo(t *testing.T) {
	t.Parallel()
	i := New(nil)
	_, _, err := i.Memory(t.Context(), contract.Lease{Handle: contract.CUDAIPC{ID: 1, Size: 1}}, nil)
	if !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Memory: %v, want one that matches ErrUnsupported", err)
	}
	i.Lost(nil)
	if err := errors.Join(i.Close(), i.Close()); err != nil {
		t.Error(err)
	}
}
