"""JAX's arrays of every kind, in `arrays`, and in `report` what JAX itself says about each.

It runs under every JAX from 0.4.18 on. What a version does not have is left out, and said in `report`.
"""

import hashlib
import json
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_enable_x64", True)

VERSION = tuple(int(n) for n in jax.__version__.split(".")[:3])
HEAP = ("shared-heap", "")
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")

arrays = {}
said = []


def see(name, x, dtype, way=SMALL, strides=None, elements=None, **more):
    """A view of just what JAX says, by that way."""
    arrays[name] = x
    plain = np.array(x)
    said.append({
        "name": name, "dtype": dtype, "shape": x.shape, "strides": strides or plain.strides,
        "route": way[0], "reason": way[1], "read_only": True,
        "sha256": hashlib.sha256(plain.tobytes() if elements is None else elements).hexdigest(), **more,
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


def alias(source):
    """An array on the memory of a NumPy array, which JAX wants aligned."""
    memory = np.empty(source.nbytes + 64, "u1")
    start = -memory.ctypes.data % 64
    aligned = memory[start:start + source.nbytes].view(source.dtype).reshape(source.shape)
    aligned[...] = source
    x = jax.device_put(aligned)
    assert x.unsafe_buffer_pointer() == aligned.ctypes.data
    return aligned, x


# Element types.
see("bool", jnp.arange(9) % 2 == 0, "bool")
for dtype in (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "bfloat16",
):
    see(dtype, jnp.arange(1, 8).astype(dtype), dtype, quirk="jax.stream-minus-one")
    see("large " + dtype, jnp.arange(1, 70001).astype(dtype), dtype, HEAP)
for dtype in (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e3m4", "float8_e4m3", "float8_e8m0fnu",
):
    if not hasattr(jnp, dtype):
        continue
    x = jnp.array([0.5, 1, 2, 4, 8], dtype)
    if VERSION >= (0, 5, 3):
        see(dtype, x, dtype)
    else:
        refuse(dtype, x, "wrong dtype", dtype, quirk="jax.float8-before-0.5.3")
for dtype in ("int2", "int4", "uint2", "uint4"):
    if hasattr(jnp, dtype):
        x = jnp.asarray(np.array([0, 1, 1], getattr(jnp, dtype)))
        refuse(dtype, x, "wrong dtype", dtype, quirk="jax.subbyte-ints")
if hasattr(jnp, "float4_e2m1fn"):
    x = jnp.array([0.5, 1, 1.5, 2, 3, 4, 6], "float4_e2m1fn")
    codes = [*np.asarray(x).view("u1").tolist(), 0]
    packed = bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2]))
    see("float4_e2m1fn", x, "float4_e2m1fn", strides=(0,), elements=packed)

# Geometry.
see("no axes", jnp.array(7.5), "float64")
see("scalar", jnp.float32(2.5), "float32")
see("weak", jnp.asarray(2.5), "float64")
assert arrays["weak"].weak_type
see("no elements", jnp.zeros((0, 3), "int16"), "int16", EMPTY)
see("no elements, 3 axes", jnp.zeros((2, 0, 3)), "float64", EMPTY)
see("3 axes", jnp.arange(24.0).reshape(2, 3, 4), "float64")
see("transposed", jnp.arange(6).reshape(2, 3).T, "int64")
see("reversed", jnp.arange(6)[::-1], "int64")
see("broadcast", jnp.broadcast_to(jnp.arange(3), (5, 3)), "int64")
see("one element", jnp.ones((1, 1, 1), "int8"), "int8")
see("many axes", jnp.ones((1,) * 20 + (2,), "int8"), "int8")
see("large", jnp.arange(300 * 400, dtype="f4").reshape(300, 400), "float32", HEAP)
see("old keys", jax.random.PRNGKey(3), "uint32")

# Where the memory comes from.
aligned, x = alias(np.arange(40000.0))
see("NumPy's", x, "float64", HEAP)
see("computed", jax.jit(lambda x: x * 2 + 1)(jnp.arange(50000.0)), "float64", HEAP)
device = jax.devices()[2]
see("third device", jax.device_put(jnp.arange(50000), device), "int64", HEAP)
if VERSION >= (0, 7, 0):
    pinned = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    see("pinned", jax.device_put(jnp.arange(50000), pinned), "int64", HEAP)
mesh = Mesh(np.array(jax.devices()), ("i",))
one = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("i",)), PartitionSpec("i"))
see("sharded over one", jax.device_put(jnp.arange(8), one), "int64")
sharded = jax.device_put(jnp.arange(80000.0).reshape(8, 10000), NamedSharding(mesh, PartitionSpec("i")))
replicated = jax.device_put(jnp.arange(20000.0), NamedSharding(mesh, PartitionSpec()))
for i in range(4):
    see("shard %d" % i, sharded.addressable_shards[i].data, "float64", HEAP)
    see("replica %d" % i, replicated.addressable_shards[i].data, "float64", HEAP)
if VERSION >= (0, 7, 0):
    from jax.experimental.layout import Format, Layout

    columns = Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    see("columns first", jax.device_put(jnp.arange(6.0).reshape(2, 3), columns), "float64", strides=(8, 16))

# What is no array, or one no more.
refuse("sharded", sharded, "wrong device", "sharded over 4 devices", quirk="jax.multi-device")
refuse("replicated", replicated, "wrong device", "replicated to 4 devices", quirk="jax.multi-device")
deleted = jnp.ones(3)
deleted.delete()
refuse("deleted", deleted, "unsupported operation", "deleted, or donated", quirk="jax.deleted-or-donated")
donated = jnp.ones(3)
jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
assert donated.is_deleted()
refuse("donated", donated, "unsupported operation", "deleted, or donated", quirk="jax.deleted-or-donated")
tracers = []
jax.jit(lambda x: tracers.append(x) or x)(jnp.ones(3))
jax.grad(lambda x: tracers.append(x) or x.sum())(jnp.ones(3))
jax.vmap(lambda x: tracers.append(x) or x)(jnp.ones((3, 2)))
for name, x in zip(("jit", "grad", "vmap"), tracers):
    refuse("tracer of " + name, x, "unsupported operation", "does not exist yet", quirk="jax.tracer")
refuse("keys", jax.random.key(3), "unsupported operation", "publish jax.random.key_data(arrays[", quirk="jax.not-arrays")
see("data of keys", jax.random.key_data(jax.random.key(3)), "uint32")
refuse("shape", jax.ShapeDtypeStruct((3,), "f4"), "unsupported operation", "no elements", quirk="jax.not-arrays")
if hasattr(jax, "new_ref"):
    refuse("reference", jax.new_ref(jnp.ones(3)), "unsupported operation", "[...]", quirk="jax.not-arrays")

report = np.frombuffer(json.dumps(said).encode(), "u1")
