"""What Warp's own code makes of CUDA Array Interfaces, without a GPU: as {case: outcome} in JSON.

Two things stand in for the GPU. Warp is told that it has a CUDA device, and what it would do with the
pointer is noted down instead.
"""

import json
import types

import warp as wp

wp.config.quiet = True
wp.init()
noted = []


def from_pointer(self, ptr, dtype, shape, strides, *rest):
    noted.append(None if strides is None else [int(s) for s in strides])


class Producer:
    def __init__(self, **entries):
        self.__cuda_array_interface__ = {
            "shape": (4, 3), "typestr": "<f4", "data": (4096, False), "version": 2, **entries,
        }

    def __len__(self):
        return 4


def outcome(dtype, **entries):
    noted.clear()
    array = wp.array.__new__(wp.array)
    try:
        array._init_from_data(Producer(**entries), dtype, None, "cuda:0", False, False)
    except Exception as e:
        return type(e).__name__ + ": " + str(e)
    return "strides %s" % noted


wp.array._init_from_ptr = from_pointer
wp.context.runtime.get_device = lambda name: types.SimpleNamespace(is_cuda=True, is_cpu=False, alias="cuda:0")
print(json.dumps({
    "vec3, no strides": outcome(wp.vec3),
    "vec3, strides None": outcome(wp.vec3, strides=None),
    "vec3, strides": outcome(wp.vec3, strides=(12, 4)),
    "float, no strides": outcome(wp.float32),
}))
