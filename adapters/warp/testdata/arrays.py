"""Warp's arrays of every kind, in `arrays`, and in `report` what Warp itself says about each.

It runs under every Warp from 1.3 on, after setup.py. What a version does not have is left out.
"""

import hashlib
import json

HEAP = ("shared-heap", "")
OWN = "Warp's own memory"
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")
DLPACK = "warp.dlpack-no-kwargs"
VERSION = tuple(int(n) for n in wp.config.version.split(".")[:2])

arrays = {}
said = []


def see(name, x, dtype, way=SMALL, quirk=DLPACK, strides=None, tag="", plain=None):
    """A view of just what Warp says when it makes a NumPy array over the same memory."""
    arrays[name] = x
    plain = x.numpy() if plain is None else plain
    if way == OWN:
        way = HEAP
        if VERSION < ALIGNED:
            way = ("staged", "outside-heap") if plain.nbytes > 64 << 10 else SMALL
    if plain.dtype.names:
        plain = plain.view("V%d" % plain.itemsize)  # with what is between the fields
    said.append({
        "name": name, "dtype": dtype, "tag": tag, "shape": plain.shape, "strides": strides or plain.strides,
        "route": way[0], "reason": way[1], "read_only": False, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


ALIGNED = (1, 7)  # from about then on malloc can tell that it is Warp that calls

# Element types.
for dtype in (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
):
    numbers = np.arange(1, 8).astype(dtype)
    see(dtype, on_cpu(numbers, getattr(wp, dtype)), dtype)
    many = (np.arange(70000) % 100).astype(dtype)
    see("large " + dtype, on_cpu(many, getattr(wp, dtype)), dtype, OWN)
see("Python's float", on_cpu([1.5, 2.5], float), "float32")
see("Python's int", on_cpu([1, 2], int), "int32")
see("bool", on_cpu([True, False, True], wp.bool), "bool",
    quirk=DLPACK if VERSION >= (1, 4) else "warp.bool-before-1.4")
if hasattr(wp, "bfloat16"):
    bits = np.array([0x3f80, 0x8000, 0xc040], "u2")
    see("bfloat16", wp.array(ptr=bits.ctypes.data, dtype=wp.bfloat16, shape=3, device="cpu"), "bfloat16", plain=bits)

# Vectors and matrices have further axes.
for name, shape in (
    ("vec2", (2,)), ("vec3", (3,)), ("vec4", (4,)), ("quat", (4,)), ("transform", (7,)), ("spatial_vector", (6,)),
    ("mat22", (2, 2)), ("mat33", (3, 3)), ("mat44", (4, 4)), ("spatial_matrix", (6, 6)),
):
    numbers = np.arange(5 * np.prod(shape), dtype="f4").reshape(5, *shape)
    see(name, on_cpu(numbers, getattr(wp, name)), "float32")
see("vec3h", on_cpu(np.arange(12).reshape(4, 3), wp.vec3h), "float16")
see("vec3d", on_cpu(np.arange(12).reshape(4, 3), wp.vec3d), "float64")
see("vec4ub", on_cpu(np.arange(12).reshape(3, 4), wp.vec4ub), "uint8")
see("vec5", on_cpu(np.arange(10).reshape(2, 5), wp.types.vector(length=5, dtype=wp.int32)), "int32")
grid = on_cpu(np.arange(2 * 3 * 4 * 5 * 3).reshape(2, 3, 4, 5, 3), wp.vec3)
see("4 axes of vec3", grid, "float32")
see("large vec3", on_cpu(np.arange(90000.0).reshape(30000, 3), wp.vec3), "float32", OWN)

# Geometry.
table = on_cpu(np.arange(300 * 400, dtype="f4").reshape(300, 400), wp.float32)
see("table", table, "float32", OWN)
see("row", table[7], "float32", OWN)
see("part", table[10:290, 5:], "float32", OWN)
see("steps", table[::2, ::3], "float32", OWN, strides=None if VERSION >= ALIGNED else (536, 4))
see("transposed", table.transpose(), "float32", OWN)
see("reshaped", table.reshape((400, 300)), "float32", OWN)
see("flat", table.flatten(), "float32", OWN)
see("components", table.reshape((100, 1200)).view(wp.float32), "float32", OWN)
see("viewed", table.view(wp.int32), "int32", OWN)
see("part of vec3", grid[1:, :, 2], "float32")
see("no elements", wp.zeros((0, 3), dtype=wp.int16, device="cpu"), "int16", EMPTY)
see("no vectors", wp.zeros(0, dtype=wp.vec3, device="cpu"), "float32", EMPTY)
see("broadcast", wp.array(ptr=table.ptr, dtype=wp.float32, shape=(3, 400), strides=(0, 4), device="cpu"),
    "float32", OWN)
said[-1]["read_only"] = True
see("zeros", wp.zeros((200, 200), dtype=wp.float64, device="cpu"), "float64", OWN)
see("full", wp.full((200, 200), 2.5, dtype=wp.float64, device="cpu"), "float64", OWN)
see("like", wp.empty_like(table), "float32", OWN)
see("clone", wp.clone(table), "float32", OWN)

# Gradients.
weights = on_cpu(np.arange(30000, dtype="f4"), wp.float32, requires_grad=True)
see("watched", weights, "float32", OWN)
weights.grad.fill_(2.0)
see("gradient", weights.grad, "float32", OWN)

# Memory that is not Warp's.
numpys = np.arange(40000.0)
over = wp.array(numpys, dtype=wp.float64, device="cpu", copy=False)
assert over.ptr == numpys.ctypes.data
see("NumPy's", over, "float64", HEAP)
see("by DLPack", wp.from_dlpack(numpys), "float64", HEAP)

# Structures.
particles = wp.zeros(8000, dtype=Particle, device="cpu")
wp.copy(particles, wp.array([Particle() for _ in range(8000)], dtype=Particle, device="cpu"))
fields = str(particles.__array_interface__["descr"])
see("structures", particles, "opaque[20]", OWN, "warp.struct-arrays", tag=fields)
see("few structures", particles[:3], "opaque[20]", OWN, "warp.struct-arrays", tag=fields)
see("every other structure", particles[::2], "opaque[20]", OWN, "warp.struct-arrays", tag=fields)

# What is not one piece of memory with strides.
picked = wp.indexedarray(table, [wp.array([0, 7], dtype=int, device="cpu"), None])
refuse("picked", picked, "layout not supported", "publish arrays[", quirk="warp.indexed-arrays")
see("picked, in one piece", picked.contiguous(), "float32")

report = np.frombuffer(json.dumps(said).encode(), "u1")
