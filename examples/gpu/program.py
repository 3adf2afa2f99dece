"""A program with an array on the GPU. It knows nothing of the host."""

import numpy as np
import pycuda.autoprimaryctx
from pycuda import gpuarray

signal = gpuarray.to_gpu(np.arange(1 << 20, dtype=np.float32))
