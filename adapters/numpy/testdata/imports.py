import ast

import numpy as np

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
TAGS = {"datetime64[ns]": 8, ">f4": 4, "<U3": 12, "|S5": 5, "|V7": 7}
STRUCTURES = {"[('a', '<i4'), ('b', '>f8', (2,))]": 20, "{'names': ['a'], 'formats': ['<i4'], 'offsets': [4], 'itemsize': 12}": 12}

# Any element type, dense or not, is the memory itself, writable or not.
start = [host("numpy", "uint8", [1], readonly=r).ctypes.data for r in (False, True)]
wanted = [(name, "", np.dtype(name)) for name in TYPES]
wanted += [(f"opaque[{size}]", tag, np.dtype(tag)) for tag, size in TAGS.items()]
wanted += [(f"opaque[{size}]", tag, np.dtype(ast.literal_eval(tag))) for tag, size in STRUCTURES.items()]
wanted.append(("opaque[20]", f"(numpy.record, {next(iter(STRUCTURES))})", wanted[-2][2]))
for name, tag, dtype in wanted:
    for strides in None, [128, -32]:
        for readonly in False, True:
            x = host("numpy", name, [2, 3], strides=strides, offset=256, readonly=readonly, tag=tag)
            assert type(x) is np.ndarray and x.dtype == dtype and x.shape == (2, 3), (name, x)
            assert x.ctypes.data == start[readonly] + 256 and x.flags.writeable is not readonly, (name, readonly)
            assert strides is None or x.strides == tuple(strides), (name, x.strides)
for shape in [], [0], [1], [2, 0, 3]:
    assert host("numpy", "float32", shape).shape == tuple(shape)
x = host("numpy", "int32", [3])
x[:] = 1, 2, 3
assert bytes(memory(12)) == x.tobytes()
assert "read-only" in refused(host("numpy", "int32", [3], readonly=True).__setitem__, 0, 1)

# The host array itself: what its protocols say and refuse, and that only a host makes one.
x, fixed, transposed = host("", "float32", [2, 3]), host("", "int64", [3], readonly=True), host("", "int16", [2, 3], strides=[2, 4])
m = host("python", "float32", [2, 3])
assert type(m) is memoryview and (m.format, m.shape, m.strides, m.readonly) == ("f", (2, 3), (12, 4), False)
assert memoryview(fixed).readonly and memoryview(transposed).f_contiguous and x.__dlpack_device__() == (1, 0)
assert "order" in refused(os.write, 1, transposed)
assert "format" in refused(memoryview, host("", "bfloat16", [2]))
for arguments in dict(stream=1), dict(copy=True), dict(dl_device=(2, 0)):
    assert refused(x.__dlpack__, **arguments).startswith("BufferError: "), arguments
assert refused(fixed.__dlpack__).startswith("BufferError: ") and '"dltensor_versioned"' in repr(fixed.__dlpack__(max_version=(1, 3)))
assert refused(type(x)).startswith("TypeError: only a host") and not hasattr(x, "__dict__")
del m, fixed, transposed

# What NumPy does not have, or only as pointers.
for name, tag in ("opaque[8]", "O"), ("opaque[8]", "[('a', 'O')]"), ("opaque[8]", "[('a'"), ("opaque[8]", "[" * 1000), ("opaque[8]", "f4"), ("float32x4", ""), ("int4", ""):
    assert refused(host, "numpy", name, [2], tag=tag).startswith("TypeError: "), (name, tag)
try:
    import ml_dtypes
except ImportError:
    assert "import ml_dtypes" in refused(host, "numpy", "bfloat16", [2])
else:
    for strides in None, [-4]:
        for name in "bfloat16", "float8_e5m2":
            assert host("numpy", name, [2], strides=strides, offset=64).dtype == getattr(ml_dtypes, name)

# The memory is in use as long as an array or a slice of it is.
del x
assert held() == 0, held()
x = host("numpy", "float32", [4, 4])
parts = [x, x.T, x[1:, 1:], memoryview(x), host("numpy", "float32", [2], strides=[8])]
del x
for left in 2, 2, 2, 2, 1:
    assert held() == left, (held(), left)
    parts.pop(0)
assert held() == 0
free.ndClose()
assert mappings() == 1  # the host's
assert "closed" in refused(host, "numpy", "float32", [1])
print("done")
