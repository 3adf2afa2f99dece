"""DALI's tensors and batches on the CPU."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types

import probing
from probing import MANY, arrays, kind, now


def outputs(*samples):
    """What a pipeline gives for one batch of these samples."""

    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=None)
    def pipe():
        return fn.external_source(source=lambda: list(samples), batch=True)

    p = pipe()
    p.build()
    return p.run()[0]


def content(x):
    x = np.asarray(x)
    return x.shape, x.tobytes()


def whole(x):
    return content(x.as_tensor())


for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float64"):
    kind(dtype, lambda: outputs((np.arange(MANY) % 100).astype(dtype))[0], content)
kind("float32", lambda: outputs(np.arange(MANY, dtype="f4"))[0], content)
kind("doubled", lambda: outputs(np.arange(MANY, dtype="f4") * 2)[0], content, "dali.kwargs-before-2.2")
kind("batch", lambda: outputs(np.ones((128, 256), "f4"), np.zeros((128, 256), "f4")), whole, "dali.batches")
kind("small", lambda: outputs(np.arange(3))[0], content, shared=False)
kind("ragged batch", lambda: outputs(np.ones(3), np.ones(4)), quirk="dali.ragged-batch")

report = probing.report()
