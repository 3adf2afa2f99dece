package core_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestDevices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d        core.Device
		text     string
		readable bool
	}{
		{core.Device{}, "cpu", true},
		{core.Device{Kind: core.CUDA}, "cuda:0", false},
		{core.Device{Kind: core.CUDA, Index: 7}, "cuda:7", false},
		{core.Device{Kind: core.CUDAPinned, Index: 1}, "cuda_pinned:1", true},
		{core.Device{Kind: core.CUDAManaged}, "cuda_managed:0", true},
		{core.Device{Kind: 9, Index: 2}, "device(9):2", false},
	} {
		if tc.d.String() != tc.text || tc.d.HostReadable() != tc.readable {
			t.Errorf("%+v is %q, readable %v", tc.d, tc.d, tc.d.HostReadable())
		}
	}
}
