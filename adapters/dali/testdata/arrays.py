"""DALI's tensors and batches of every kind, in `arrays`, and in `report` what DALI itself says about each.

It runs under every DALI from 1.53 on, after setup.py. What a version does not have is left out.
"""

import hashlib
import json

HEAP = ("shared-heap", "")
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")

arrays = {}
said = []


def see(name, x, plain, way=SMALL, quirk=""):
    """A view of just what the NumPy array says."""
    arrays[name] = x
    said.append({
        "name": name, "dtype": plain.dtype.name, "shape": plain.shape, "strides": plain.strides,
        "route": way[0], "reason": way[1], "read_only": False, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


# What pipelines give, of every element type, by batch and by sample.
for dtype in TYPES:
    small = [(np.arange(6).reshape(2, 3) + i).astype(dtype) for i in range(4)]
    large = [((np.arange(70000).reshape(700, 100) + i) % 100).astype(dtype) for i in range(4)]
    for size, plain, way in ("small ", small, SMALL), ("large ", large, HEAP):
        (out,) = pipeline(samples(*plain)).run()
        see(size + dtype, out, np.stack(plain), way, "dali.batches")
        see(size + dtype + ", one piece", out.as_tensor(), np.stack(plain), way)
        see(size + dtype + ", sample", out[3], plain[3], way)
numbers = np.asarray(pipeline(lambda: fn.random.uniform(range=[0.0, 1.0], shape=[300, 400])).run()[0].as_tensor())
(out,) = pipeline(lambda: fn.random.uniform(range=[0.0, 1.0], shape=[300, 400])).run()
see("computed", out, numbers, HEAP, "dali.batches")
for options in {"exec_dynamic": False}, {"exec_dynamic": True}:
    (out,) = pipeline(lambda: fn.random.uniform(range=[0.0, 1.0], shape=[300, 400]), **options).run()
    see(str(options), out, numbers, HEAP, "dali.batches")

# Ragged batches.
ragged = [np.full((n, 3), n, "f4") for n in (1, 2, 3, 0)]
(out,) = pipeline(samples(*ragged)).run()
refuse("ragged", out, "layout not supported", "name one sample: arrays[", quirk="dali.ragged-batch")
for i in range(3):
    see("ragged, sample %d" % i, out[i], ragged[i])
see("ragged, no elements", out[3], ragged[3], EMPTY)

# Scalars, and tensors over memory that is not DALI's.
(out,) = pipeline(samples(*[np.array(i, "i8") for i in range(4)])).run()
see("scalars", out, np.arange(4), quirk="dali.batches")
see("scalar", out[2], np.array(2))
over = np.arange(60000.0).reshape(300, 200)
see("NumPy's", TensorCPU(over, "HW"), over, HEAP)
see("by DLPack", TensorCPU(over.__dlpack__()), over, HEAP)
see("list of NumPy's", TensorListCPU(over, "H"), over, HEAP, "dali.batches")

# Enumerations.
for kind in types.DALIInterpType.INTERP_LINEAR, types.DALIDataType.FLOAT, types.DALIImageType.RGB:
    (out,) = pipeline(lambda: types.Constant(kind)).run()
    refuse("members of " + type(kind).__name__, out[0], "wrong dtype", "not numbers", quirk="dali.enumerations")
    refuse("batch of " + type(kind).__name__, out, "wrong dtype", "not numbers", quirk="dali.enumerations")

# The dynamic mode, which had no protocol for the CPU at first.
import nvidia.dali
import nvidia.dali.experimental.dynamic as ndd

KWARGS = "dali.dynamic-no-kwargs"
batch = ndd.as_batch([over, over + 1])
refuse("dynamic batch", batch, "unsupported operation", "].tensors[0]", quirk="dali.dynamic-batch")
if int(nvidia.dali.__version__.split(".")[0]) >= 2:
    see("dynamic", ndd.as_tensor(over), over, HEAP, KWARGS)
    lazy = ndd.cast(ndd.as_tensor(over), dtype=ndd.int32, device="cpu")
    see("computed when asked for", lazy, over.astype("i4"), HEAP, KWARGS)
    see("dynamic, row", ndd.as_tensor(over)[1], over[1], quirk=KWARGS)
    see("dynamic sample", batch.tensors[1], over + 1, HEAP, KWARGS)
else:
    refuse("dynamic", ndd.as_tensor(over), "unsupported operation", "publish numpy", quirk="dali.dynamic-tensor-before-2")

report = np.frombuffer(json.dumps(said).encode(), "u1")
