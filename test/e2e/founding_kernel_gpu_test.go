//go:build cuda

package e2e

import (
	"errors"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestPinnedAndManagedMemoryOnGPU is TestPinnedAndManagedMemory with the rest of the story: pinned and
// managed memory as arguments of a kernel, beside that of the GPU itself. A view is one argument, of
// whatever memory it is. Where the GPU cannot reach it the error says so, and it is reached once it is
// pinned.
func TestPinnedAndManagedMemoryOnGPU(t *testing.T) {
	t.Parallel()
	const script = `
import numpy as np
import pycuda.autoinit
from pycuda import driver, gpuarray

device = gpuarray.to_gpu(np.full(100000, 1, "f4"))
pinned = driver.pagelocked_empty(100000, "f4")
managed = driver.managed_empty(100000, "f4", mem_flags=driver.mem_attach_flags.GLOBAL)
plain = np.full(100000, 4, "f4")
result = np.zeros(100000, "f4")
pinned[:], managed[:] = 2, 3
`
	ptx, err := os.ReadFile("../gpu/testdata/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	startOnGPU(t, "pycuda", "NDBRIDGE_TEST_PYTHON_PYCUDA", script, func(t *testing.T, run *harness.Run) {
		stream, err := cuda.NewStream(0)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		module, err := cuda.LoadModule(t.Context(), 0, ptx)
		if err != nil {
			t.Fatal(err)
		}
		defer module.Close()
		kernel, err := module.Function(t.Context(), "copy")
		if err != nil {
			t.Fatal(err)
		}
		result := run.View(t, "result", hostplugin.Writable())
		pin(t, result)
		x, err := core.Slice[float32](result)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"device", "pinned", "managed", "plain"} {
			v := run.View(t, name)
			launch := func() error {
				return kernel.Launch(stream, cuda.LaunchConfig{Grid: cuda.Dim3{8}, Block: cuda.Dim3{256}},
					result, cuda.In(v), uint64(v.Len()), uint64(0))
			}
			err := launch()
			if errors.Is(err, core.ErrDevice) && v.Device().HostReadable() {
				pin(t, v)
				err = launch()
			}
			if err != nil {
				t.Errorf("%s, by %v on %v: %v", name, v.Route(), v.Device(), err)
			}
			if err := stream.Synchronize(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := float32(i + 1); x[0] != want || x[len(x)-1] != want {
				t.Errorf("%s, by %v: the kernel has read %v ... %v, want %v", name, v.Route(), x[0], x[len(x)-1], want)
			}
		}
	})
}

// pin gives a view's memory to the driver until the test ends.
func pin(t *testing.T, v *core.View) {
	t.Helper()
	unpin, err := cuda.Pin(0, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unpin(); err != nil {
			t.Error(err)
		}
	})
}
