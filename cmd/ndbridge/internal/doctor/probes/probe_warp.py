"""Warp's arrays on the CPU."""

import numpy as np
import warp as wp

import probing
from probing import MANY, arrays, kind, now

wp.config.quiet = True
wp.init()


@wp.struct
class Particle:
    mass: wp.float32
    at: wp.vec3


def content(x):
    x = x.numpy()
    return x.shape, x.tobytes()


def on_cpu(dtype, shape=(MANY,), **more):
    values = (np.arange(np.prod(shape)) % 100).reshape(shape)
    return wp.array(values, dtype=getattr(wp, dtype), device="cpu", **more)


grid = on_cpu("float32", (256, 512))

for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float64"):
    kind(dtype, lambda: on_cpu(dtype), content)
kind("float32", lambda: on_cpu("float32"), content, "warp.dlpack-no-kwargs")
kind("bool", lambda: on_cpu("bool"), content, "warp.bool-before-1.4")
kind("vectors", lambda: on_cpu("vec3", (MANY, 3)), content)
kind("matrices", lambda: on_cpu("mat22", (MANY, 2, 2)), content)
kind("transposed", lambda: grid.transpose(), content)
kind("part", lambda: grid[1::2, 3::7], content)
kind("gradient", lambda: on_cpu("float32", requires_grad=True).grad, content)
kind("structures", lambda: wp.zeros(MANY, dtype=Particle, device="cpu"), content, "warp.struct-arrays")
kind("small", lambda: on_cpu("float32", (3,)), content, shared=False)
kind("no elements", lambda: wp.zeros((0, 3), dtype=wp.float32, device="cpu"), content, shared=False)
kind("picked", lambda: wp.indexedarray(grid, [wp.array([0, 7], dtype=int, device="cpu"), None]),
     quirk="warp.indexed-arrays")

report = probing.report()
