import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.tensors import TensorCPU, TensorListCPU


def pipeline(outputs, batch_size=4, **options):
    """A pipeline of the operators that outputs() makes, which has run once."""
    p = pipeline_def(outputs)(batch_size=batch_size, num_threads=1, device_id=None, seed=7, **options)
    p.build()
    return p


def samples(*arrays):
    """What makes a pipeline give these arrays, one a sample."""
    return lambda: fn.external_source(source=lambda: list(arrays), dtype=TYPES[arrays[0].dtype.name])


TYPES = {
    "bool": types.BOOL, "int8": types.INT8, "int16": types.INT16, "int32": types.INT32, "int64": types.INT64,
    "uint8": types.UINT8, "uint16": types.UINT16, "uint32": types.UINT32, "uint64": types.UINT64,
    "float16": types.FLOAT16, "float32": types.FLOAT, "float64": types.FLOAT64,
}
