"""What DALI makes of CUDA array interfaces with one stream and another: a JSON object of answers.

Its versions 1.32 to 1.36 took the stream for a number, also where it is None, as PyCUDA says.
"""

import json

import with_driver as framework

import nvidia.dali
from nvidia.dali.backend import TensorGPU

answers = {"version": nvidia.dali.__version__}
array = framework.make("cuMemAlloc")
for stream in (None, 1):
    array.__cuda_array_interface__["stream"] = stream
    try:
        answers[str(stream)] = str(list(TensorGPU(array, "").shape()))
    except Exception as error:
        answers[str(stream)] = f"{type(error).__name__}: {error}"
print(json.dumps(answers))
