"""JAX's arrays on the CPU."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"  # this is about the CPU, and GPUs may be busy
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"  # to have something to shard over

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import probing
from probing import MANY, arrays, kind, now


def content(x):
    return x.shape, np.asarray(x).tobytes()


def plain(dtype):
    return jnp.arange(MANY).astype(getattr(jnp, dtype))


def deleted():
    x = plain("float32")
    x.delete()
    return x


def tracer():
    seen = []
    jax.jit(lambda x: seen.append(x) or x)(jnp.ones(3))
    return seen[0]


def sharded():
    mesh = Mesh(np.array(jax.devices()), ("i",))
    return jax.device_put(jnp.ones(8), NamedSharding(mesh, PartitionSpec("i")))


for dtype in ("int8", "int16", "uint8", "uint16", "uint32", "float16", "bfloat16", "complex64"):
    kind(dtype, lambda: plain(dtype), content)
kind("float32", lambda: plain("float32"), content, "jax.stream-minus-one")
kind("int32", lambda: plain("int32"), content, "jax.legacy-capsule-only")
kind("bool", lambda: plain("bool_"), content, "jax.bool-before-0.4.24")
kind("computed", lambda: jax.jit(lambda x: x * 2 + 1)(plain("float32")), content, "jax.kwargs-before-0.4.27")
kind("matrix", lambda: plain("float32").reshape(256, 256) @ jnp.ones((256, 256)), content, "jax.memory-reused")
kind("small", lambda: jnp.arange(3), content, shared=False)
kind("no elements", lambda: jnp.zeros((0, 3)), content, shared=False)
if tuple(int(n) for n in jax.__version__.split(".")[:3]) < (0, 5, 3):
    kind("float8", lambda: plain("float8_e5m2"), quirk="jax.float8-before-0.5.3")
else:
    kind("float8", lambda: plain("float8_e5m2"), content)
kind("int4", lambda: jnp.asarray(np.zeros(3, jnp.int4)), quirk="jax.subbyte-ints")
kind("deleted", deleted, quirk="jax.deleted-or-donated")
kind("tracer", tracer, quirk="jax.tracer")
kind("sharded", sharded, quirk="jax.multi-device")
kind("random key", lambda: jax.random.key(0), quirk="jax.not-arrays")

report = probing.report()
