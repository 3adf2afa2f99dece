package e2e

import (
	"cmp"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// startOnGPU runs a script with each Python that has a framework on a GPU, or on the simulated driver.
func startOnGPU(t *testing.T, framework, variable, script string, f func(*testing.T, *harness.Run), adapters ...hostplugin.Adapter) {
	t.Helper()
	pythons, env := programtest.GPUs(t, framework, variable)
	settings := map[string]string{"CUDASIM_DELAY_US": "20000"}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		settings[name] = value
	}
	for version, python := range pythons {
		t.Run(version, func(t *testing.T) {
			f(t, harness.Start(t, script+"\nimport remote\nremote.serve()\n", harness.Options{
				Python: python, Env: settings,
				Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Adapters = adapters }},
			}))
		})
	}
}

// numbers copies what a view shows, wherever its memory is: a host that was built without CUDA, or has no
// GPU, is given a copy in its own.
func numbers(t *testing.T, v *core.View) []float32 {
	t.Helper()
	x := make([]float32, v.Len())
	if _, err := core.Copy(t.Context(), x, v); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCUDAInterfaceWithoutStridesOnGPU is TestCUDAInterfaceWithoutStrides with memory behind the
// dictionaries: that of Numba, which says None itself where an array is row-major.
func TestCUDAInterfaceWithoutStridesOnGPU(t *testing.T) {
	t.Parallel()
	const script = `
import numpy as np
from numba import cuda

x = cuda.to_device(np.arange(12, dtype="f4").reshape(4, 3))


class Producer:
    def __init__(self, without=(), **entries):
        self.x = x
        self.__cuda_array_interface__ = {**x.__cuda_array_interface__, **entries}
        for name in without:
            del self.__cuda_array_interface__[name]


missing, none, given = Producer(["strides"]), Producer(strides=None), Producer(strides=(12, 4))
second = Producer(["strides", "stream"], version=2)  # as JAX's and PyTorch's are
`
	startOnGPU(t, "numba", "NDBRIDGE_TEST_PYTHON_CUDA", script, func(t *testing.T, run *harness.Run) {
		if got := harness.Eval[bool](t, run.Remote, `x.__cuda_array_interface__["strides"] is None`); !got {
			t.Error("upstream: Numba gives the strides of a row-major array")
		}
		for _, name := range []string{"x", "missing", "none", "given", "second"} {
			v := run.View(t, name)
			if x := numbers(t, v); x[7] != 7 || v.Stride(0) != 12 || v.Stride(1) != 4 {
				t.Errorf("%s: %v of %v", name, v.Layout(), x)
			}
		}
	})
}

// TestCUDAInterfaceStreamNoneOnGPU is TestCUDAInterfaceStreamNone with PyCUDA's own arrays. None says that
// nothing needs to be waited for, while the array is written on a stream of the program's; who believes
// that reads what was there before. Here all work in the array's context is waited for, whatever sync
// says.
func TestCUDAInterfaceStreamNoneOnGPU(t *testing.T) {
	t.Parallel()
	const script = `
import numpy as np
import pycuda.autoinit
from pycuda import driver, gpuarray

simulated = "simulated" in pycuda.autoinit.device.name()
times, size = (20, 1 << 12) if simulated else (1000, 1 << 26)
large = driver.mem_alloc(4 * size)
stream = driver.Stream()
number = gpuarray.to_gpu(np.ones(3, "f4"))
ONE, TWO = (int(np.float32(x).view("u4")) for x in (1, 2))


def trusting(x):
    """What a consumer reads that does what the dictionary says: waits for no stream."""
    assert x.__cuda_array_interface__["stream"] is None
    mine, copy = driver.Stream(), driver.pagelocked_empty(3, "f4")
    driver.memcpy_dtoh_async(copy, x.ptr, mine)
    mine.synchronize()
    return copy.tolist()


def write_late():
    driver.memset_d32(number.ptr, ONE, 3)
    pycuda.autoinit.context.synchronize()
    for _ in range(times):
        driver.memset_d32_async(large, 0, size, stream)
    driver.memset_d32_async(number.ptr, TWO, 3, stream)
    return number


class Late:
    @property
    def now(self):
        pycuda.autoinit.context.push()  # on this thread
        try:
            return write_late()
        finally:
            pycuda.autoinit.context.pop()


late = Late()
`
	for _, sync := range []contract.SyncPolicy{"", contract.SyncStream} {
		t.Run(cmp.Or(string(sync), "default"), func(t *testing.T) {
			startOnGPU(t, "pycuda", "NDBRIDGE_TEST_PYTHON_PYCUDA", script, func(t *testing.T, run *harness.Run) {
				if got := harness.Eval[[]float32](t, run.Remote, "trusting(write_late())"); got[0] != 1 {
					t.Errorf("upstream: who believes the dictionary reads %v, not what was there before", got)
				}
				if x := numbers(t, run.View(t, "late.now")); x[0] != 2 || x[2] != 2 {
					t.Errorf("the view shows %v, want 2", x)
				}
			}, hostplugin.Adapter{Name: "pycuda", Sync: sync})
		})
	}
}
