package torch_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// exchangeScript replaces the functions by which PyTorch exports from C.
const exchangeScript = `
import ctypes

import numpy as np
import torch

real = torch.Tensor.__dlpack_c_exchange_api__
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
Delete = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
deleted = np.zeros(1)
values = torch.arange(4.0, dtype=torch.float64)
tensor = values[1:]


@Delete
def delete(managed):
    deleted[0] += 1


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Delete),
        ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]


shape = (ctypes.c_int64 * 1)(3)


def managed(**fields):
    usual = dict(major=1, minor=3, deleter=delete, data=values.data_ptr(), device=(1, 0), rank=1, code=2, bits=64, lanes=1,
                 shape=ctypes.addressof(shape), byte_offset=8)
    return Managed(**{**usual, **fields})


keep = []


def api(export, major=1, previous=None):
    words = (ctypes.c_uint64 * 7)(major, previous or 0, 0, ctypes.cast(export, ctypes.c_void_p).value or 0)
    keep.append((words, export))
    return ctypes.addressof(words)


def giving(struct):
    def export(o, made):
        made[0] = ctypes.addressof(struct) if struct else None
        return 0
    keep.append(struct)
    return Export(export)


@Export
def failing(o, made):
    return -1


good = api(giving(managed()))
capsules = {
    "good": good, "chained": api(Export(), 2, good), "failing": api(failing), "newer": api(Export(), 2),
    "missing": api(Export()), "nothing": api(giving(None)), "newer_tensor": api(giving(managed(major=2))),
    "no_data": api(giving(managed(data=None))), "device": api(giving(managed(device=(8, 0)))),
}


class Use:
    def __getitem__(self, name):
        other = {"no_capsule": 3, "other_capsule": new_capsule(good, b"other", None), "real": real}
        torch.Tensor.__dlpack_c_exchange_api__ = \
            new_capsule(capsules[name], b"dlpack_exchange_api", None) if name in capsules else other[name]
        return deleted


use = Use()
`

// TestExchange meets functions for exporting from C that are not as they should be: each is an error
// of its kind, a tensor that was made is given back exactly once, and the next one is fine.
func TestExchange(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, exchangeScript, programtest.Options{Python: newest(t)})
	p.Finish(t)
	for _, tt := range []struct {
		name  string
		kind  string
		gives float64 // how many tensors back
	}{
		{"good", "", 1},
		{"chained", "", 1},
		{"failing", "python error", 0},
		{"newer", "incompatible version", 0},
		{"missing", "invalid pointer", 0},
		{"nothing", "invalid pointer", 0},
		{"newer_tensor", "incompatible version", 1},
		{"no_data", "invalid pointer", 1},
		{"device", "wrong device", 1},
		{"no_capsule", "protocol violation", 0},
		{"other_capsule", "protocol violation", 0},
		{"real", "", 0},
	} {
		before := numbers(t, p, "use["+`"`+tt.name+`"`+"]")[0]
		v, err := p.View(t, "tensor", contract.Request{})
		if core.Category(err) != tt.kind {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.kind)
		}
		if err == nil {
			if got := elements(t, v); got != [3]float64{1, 2, 3} {
				t.Errorf("%s: %v", tt.name, got)
			}
			_ = v.Close()
		}
		if after := numbers(t, p, "deleted")[0]; after-before != tt.gives {
			t.Errorf("%s: gave %v tensors back, want %v", tt.name, after-before, tt.gives)
		}
	}
}

// elements reads three numbers of either size.
func elements(t *testing.T, v *core.View) (x [3]float64) {
	t.Helper()
	for i := range x {
		var err error
		if v.DType() == core.Float32 {
			var narrow float32
			narrow, err = core.At[float32](v, i)
			x[i] = float64(narrow)
		} else {
			x[i], err = core.At[float64](v, i)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}
