import jax
import numpy as np

start = host("numpy", "uint8", [1]).ctypes.data
for name in "bool", "uint8", "int32", "float16", "bfloat16", "float32", "complex64":
    x = host("jax", name, [2, 3], offset=256)
    assert isinstance(x, jax.Array) and str(x.dtype) == name and x.shape == (2, 3), (name, x)
    assert x.unsafe_buffer_pointer() == start + 256, name
for name, less in ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"):
    why = refused(host, "jax", name, [2, 3], offset=256)
    assert "JAX makes %s of %s" % (less, name) in why, why
jax.config.update("jax_enable_x64", True)
for name in "int64", "uint64", "float64", "complex128":
    x = host("jax", name, [2, 3], offset=256)
    assert str(x.dtype) == name and x.unsafe_buffer_pointer() == start + 256, name
jax.config.update("jax_enable_x64", False)
assert host("jax", "float32", [4], offset=4).unsafe_buffer_pointer() != start + 4  # a copy

# The memory is in use as long as an array is, or what shows it.
del x
assert held() == 0, held()
x = host("jax", "float32", [64])
shown = np.asarray(x)
del x
assert held() == 1, held()
del shown
assert held() == 0, held()

# A function does not write its result into memory that was donated but is the host's, read-only or not.
add = jax.jit(lambda x: x + 1, donate_argnums=0)
for readonly in False, True:
    x = host("jax", "float32", [1024], readonly=readonly)
    result = add(x)
    assert result[0] == 1 and bytes(memory(4096)) == bytes(4096), readonly
    del x, result
    assert held() == 0, held()
assert "stri" in refused(host, "jax", "float32", [2], strides=[-4], offset=64)
keep = host("jax", "float32", [3])  # until the interpreter has ended
print("done")
