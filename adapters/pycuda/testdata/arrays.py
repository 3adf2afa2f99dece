"""PyCUDA's arrays of every kind, in `arrays`, and in `report` what PyCUDA itself says about each."""

import hashlib
import json

COPIED = ("staged", "host-without-gpu")  # the test's host has none
EMPTY = ("empty", "")

arrays = {}
said = []


def see(name, x, dtype, way=COPIED, quirk="", tag=""):
    """A view of just what PyCUDA says: the same geometry, and the elements that get() copies."""
    arrays[name] = x
    plain = x.get() if x.size else np.empty(x.shape, x.dtype)
    said.append({
        "name": name, "dtype": dtype, "tag": tag, "shape": x.shape, "strides": x.strides,
        "route": way[0], "reason": way[1], "read_only": False, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


def on_gpu(dtype, shape=(7,), **more):
    return gpuarray.to_gpu((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype), **more)


# Element types.
for dtype in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
):
    see(dtype, on_gpu(dtype), dtype)
    see("large " + dtype, on_gpu(dtype, (70000,)), dtype)
for dtype in ("bfloat16", "float8_e4m3fn"):
    see(dtype, on_gpu(getattr(ml_dtypes, dtype)), dtype, quirk="pycuda.extension-dtypes")
see("int4", on_gpu(ml_dtypes.int4), "opaque[1]", quirk="pycuda.extension-dtypes", tag="int4")
see("records", gpuarray.to_gpu(np.ones(3, record)), "opaque[8]", quirk="pycuda.records-without-fields", tag=str(record))
for name in "float2", "float4", "int3", "uchar4":
    dtype = getattr(gpuarray.vec, name)
    see("vec." + name, gpuarray.to_gpu(np.ones(5, dtype)), "opaque[%d]" % dtype.itemsize,
        quirk="pycuda.records-without-fields", tag=str(dtype))
refuse("long doubles", gpuarray.empty(3, "longdouble"), "wrong dtype", "")

# Geometry.
matrix = on_gpu("float32", (5, 6))
see("matrix", matrix, "float32")
see("column-major", gpuarray.to_gpu(np.asfortranarray(np.arange(30.0).reshape(5, 6))), "float64")
see("transposed", matrix.T, "float32")
see("rows", matrix[1:4], "float32")
see("row", matrix[2], "float32")
see("reshaped", matrix.reshape(2, 15), "float32")
see("4 axes", on_gpu("int16", (2, 3, 4, 5)), "int16")
see("no axes", gpuarray.to_gpu(np.array(1.5)), "float64")
see("one element", on_gpu("float64", (1, 1)), "float64")
see("no elements", gpuarray.empty((0, 3), "float32"), "float32", EMPTY)
see("no elements either", matrix[5:], "float32", EMPTY)

# Memory.
pool = DeviceMemoryPool()
see("of a pool", on_gpu("float32", allocator=pool.allocate), "float32")
see("over another's", gpuarray.GPUArray((2, 3), "float32", gpudata=matrix.gpudata, base=matrix), "float32")
refuse("allocation", driver.mem_alloc(64), "unsupported operation", "a DeviceAllocation is memory without a shape",
       quirk="pycuda.allocations")
refuse("pool's allocation", pool.allocate(64), "unsupported operation", "a PooledDeviceAllocation is memory",
       quirk="pycuda.allocations")
freed = on_gpu("float32")
freed.gpudata.free()
refuse("freed", freed, "invalid pointer", "")

report = bytearray(json.dumps(said).encode())
