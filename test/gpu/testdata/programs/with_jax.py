"""JAX. Its arrays are never written, so a late one is made by work that takes its time.

Which allocator it has is decided by XLA_PYTHON_CLIENT_PREALLOCATE and XLA_PYTHON_CLIENT_ALLOCATOR.
"""

import contextlib
import functools
import time

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding
from work import COUNT, use_primary, work

_SIDE = 8192
_gpu = jax.devices("gpu")[0]
use_primary()
_pinned = SingleDeviceSharding(_gpu, memory_kind="pinned_host")


@jax.jit
def _step(x):
    return jnp.dot(x, x, precision="highest")


@jax.jit
def _last(x, value):
    return jnp.full((COUNT,), value, dtype=jnp.float32) + x[0, 0]


_zeros = jnp.zeros((_SIDE, _SIDE), dtype=jnp.float32)
_step_seconds = 0


def version():
    return jax.__version__


def _calibrate():
    """Find out how long a step takes."""
    global _step_seconds
    jax.device_put(_last(_step(_step(_zeros)), 0.0), _pinned).block_until_ready()
    start = time.perf_counter()
    _step(_zeros).block_until_ready()
    _step_seconds = time.perf_counter() - start


def written(kind, value, late=True):
    if not _step_seconds:
        _calibrate()
    x = _zeros
    for _ in range(1 + int(work.milliseconds / 1000 / _step_seconds) if late else 0):
        x = _step(x)
    array = _last(x, value)
    if kind == "pinned_host":
        array = jax.device_put(array, _pinned)
    return array if late else array.block_until_ready()


@functools.partial(jax.jit, donate_argnums=0)
def _donating(x):
    return x + 1


def donate(names, seconds):
    """Steps of a loop that donates its state, errors among them, and the last error."""
    names["state"] = jnp.zeros((4 << 20,), dtype=jnp.float32).block_until_ready()
    steps, errors, why = 0, 0, ""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            names["state"] = _donating(names["state"])
        except Exception as error:
            errors, why = errors + 1, str(error)
            names["state"] = jnp.zeros((4 << 20,), dtype=jnp.float32)
        steps += 1
    names["state"].block_until_ready()
    return [steps, errors, why]


@jax.jit
def _graphed(x, y):
    for _ in range(4):
        x = jnp.tanh(x @ y)
    return x


_inputs = []


def capture(n):
    """Has XLA make a graph for inputs that lie elsewhere each time (with the flags of the test, what cuBLAS does is captured)."""
    x = jnp.full((512, 512), n / 1000)
    _inputs[:-8] = []
    _inputs.append(x)
    _graphed(x, x).block_until_ready()


def pending(array):
    return not array.is_ready()


def address(array):
    return array.unsafe_buffer_pointer()


def stream():
    return 0


def other_stream():
    return contextlib.nullcontext()
