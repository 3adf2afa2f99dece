package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// onGPU is the device that the driver would name for the dictionaries here.
var onGPU = core.Device{Kind: core.CUDA}

// TestCUDAInterfaceWithoutStrides: a dictionary that leaves strides out, or says None, as JAX and others
// do for contiguous arrays, breaks Warp 1.6.0 where elements are vectors. Here both mean row-major.
func TestCUDAInterfaceWithoutStrides(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), harness.PythonWarp(t), "testdata/interfaces.py")
	var stderr strings.Builder
	command.Stderr = &stderr
	said, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var upstream map[string]string
	last := said[strings.LastIndexByte(strings.TrimSpace(string(said)), '\n')+1:]
	if err := json.Unmarshal(last, &upstream); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for what, want := range map[string]string{
		"vec3, no strides":   "TypeError: 'NoneType' object is not subscriptable",
		"vec3, strides None": "TypeError: 'NoneType' object is not subscriptable",
		"vec3, strides":      "strides [[12]]",
		"float, no strides":  "strides [None]",
	} {
		if upstream[what] != want {
			t.Errorf("upstream: Warp answers %s with %q, want %q", what, upstream[what], want)
		}
	}

	given := cai.Dict{Shape: []int64{4, 3}, Typestr: "<f4", Data: 1 << 32, Version: 2}
	for what, strides := range map[string][]int64{"no strides": nil, "strides": {12, 4}} {
		d := given
		d.HasStrides, d.Strides = strides != nil, strides
		a, err := cai.ReadCUDA(d, onGPU)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		l, err := core.NewLayout(a.Spec)
		if err != nil || l.Stride(0) != 12 || l.Stride(1) != 4 || !l.Contiguous() || l.Device() != onGPU {
			t.Errorf("%s: %v (%v)", what, l, err)
		}
	}
	sameOnCPU(t)
}

// sameOnCPU reads dictionaries of the same keys that describe host memory, in a program.
func sameOnCPU(t *testing.T) {
	t.Helper()
	run := startTaken(t, harness.Python(t), "", `
import numpy as np

memory = np.arange(12, dtype="f4").reshape(4, 3)

class Producer:
    def __init__(self, **entries):
        self.__array_interface__ = {
            "shape": (4, 3), "typestr": "<f4", "data": (memory.ctypes.data, False), "version": 2, **entries,
        }

missing, none, given = Producer(), Producer(strides=None), Producer(strides=(12, 4))
`)
	for _, name := range []string{"missing", "none", "given"} {
		v := run.View(t, name)
		if x, err := core.At[float32](v, 2, 1); x != 7 || err != nil || v.Stride(0) != 12 {
			t.Errorf("%s strides: %v, element (2, 1) is %v (%v)", name, v.Layout(), x, err)
		}
	}
}

// TestCUDAInterfaceStreamNone: PyCUDA's dictionary has the key stream with None in it, which DALI 1.32
// to 1.36 took for a number. Here None and a missing key mean the same, that nothing is said; and a
// number is kept for those who order work.
//
// DALI asks for a GPU before it looks at the dictionary, so its old versions are not asked here.
func TestCUDAInterfaceStreamNone(t *testing.T) {
	t.Parallel()
	// What pycuda.gpuarray.GPUArray says: strides always, stream None.
	d := cai.Dict{
		Shape: []int64{100}, Typestr: "<f8", HasStrides: true, Strides: []int64{8}, Data: 1 << 32, Version: 3,
	}
	for _, stream := range []cai.Stream{{}, {Given: true, Handle: 1}, {Given: true, Handle: 1 << 40}} {
		d.Stream = stream
		a, err := cai.ReadCUDA(d, onGPU)
		if err != nil || a.Stream != stream || a.Spec.DType != core.Float64 {
			t.Errorf("stream %+v: %+v (%v)", stream, a, err)
		}
	}
	d.Stream = cai.Stream{Given: true}
	if _, err := cai.ReadCUDA(d, onGPU); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("stream 0, which the protocol forbids: %v", err)
	}

	// In a program without a GPU such an array is refused, whatever its stream, and the session goes on.
	run := startTaken(t, harness.Python(t), "", `
import numpy as np

class GPUArray:
    def __init__(self, **entries):
        self.__cuda_array_interface__ = {
            "shape": (100,), "strides": (8,), "typestr": "<f8", "data": (1 << 32, False), "version": 3, **entries,
        }

none, missing, legacy = GPUArray(stream=None), GPUArray(), GPUArray(stream=1)
after = np.arange(3.0)
`)
	for _, name := range []string{"none", "missing", "legacy"} {
		_, err := run.Session.View(t.Context(), name)
		if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrDevice) || !ok || e.Remedy == "" {
			t.Errorf("stream %s: %v", name, err)
		}
	}
	if x, err := core.At[float64](run.View(t, "after"), 2); x != 2 || err != nil {
		t.Errorf("after: %v (%v)", x, err)
	}
}

// TestPinnedAndManagedMemory: memory that both the CPU and the GPU reach is said to be pinned (3) or
// managed (13), its address is a plain number, or an object that stands for one, and consumers that know
// only CPU and CUDA, or only their own kind of pointer, refuse it or fail. Here pinned memory is read as
// the host memory that it is, an address may be whatever Python takes for an index, and managed memory is
// a device's, named in the error, since without the driver nobody knows whether the CPU may read it now.
func TestPinnedAndManagedMemory(t *testing.T) {
	t.Parallel()
	run := startTaken(t, harness.Python(t), "", `
import ctypes
import numpy as np

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

class Labelled:
    """NumPy's memory with another device's type on it, as its owner would say."""

    def __init__(self, kind, x):
        self.kind, self.x = kind, x

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None, **more):
        if stream is not None:
            raise RuntimeError("stream should be None for host memory")
        capsule = self.x.__dlpack__()
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = self.kind
        return capsule

class Address:
    """An address that is no int, as cuda.core's are for device memory."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

class Interface:
    def __init__(self, address):
        self.__array_interface__ = {"shape": (100000,), "typestr": "<f4", "data": (address, True), "version": 3}

x = np.arange(100000, dtype="f4")
pinned, managed = Labelled(3, x), Labelled(13, x)
plain, number, object = Interface(x.ctypes.data), Interface(np.uint64(x.ctypes.data)), Interface(Address(x.ctypes.data))
`)
	for _, name := range []string{"pinned", "plain", "number", "object"} {
		countsUp(t, run.View(t, name, hostplugin.NoCopy()), true)
	}
	_, err := run.Session.View(t.Context(), "managed")
	if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrDevice) || !ok || e.Remedy == "" {
		t.Errorf("managed: %v", err)
	}
}
