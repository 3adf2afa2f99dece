package hostplugin_test

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
)

// TestNewOnWithoutCUDA: a host without CUDA says so, and makes arrays in host memory all the same.
func TestNewOnWithoutCUDA(t *testing.T) {
	if gpu.Available() == nil {
		return // test/gpu has the tests of hosts that have it
	}
	t.Parallel()
	s := start(t)
	if _, err := s.NewOn(core.Device{Kind: core.CUDA}, core.Float32, 4); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("an array on a GPU: %v, want ErrUnsupported", err)
	}
	v, err := s.NewOn(core.Device{}, core.Float32, 4)
	if err != nil {
		t.Fatal(err)
	}
	if v.Device() != (core.Device{}) || !v.Writable() {
		t.Errorf("%v, writable: %v", v, v.Writable())
	}
}
