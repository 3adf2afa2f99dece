"""Uses PyCUDA as its users do; fails if the simulated driver does not do what a GPU would."""

import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
import pycuda.gpuarray as gpuarray
from pycuda.tools import DeviceMemoryPool

PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry ndbridge_scale_f32(.param .u64 to, .param .f32 factor, .param .u64 count) { ret; }
"""

assert pycuda.autoinit.device.name() == "ndbridge simulated GPU"
values = np.arange(12, dtype=np.float32).reshape(3, 4)

array = gpuarray.to_gpu(values)
assert (array.get() == values).all()
assert (array[:, ::2].get() == values[:, ::2]).all()
assert array.T.__cuda_array_interface__["strides"] == (4, 16)
assert gpuarray.empty((5,), np.int64).shape == (5,)

pool = DeviceMemoryPool()
pooled = gpuarray.to_gpu(values, allocator=pool.allocate)
assert (pooled.get() == values).all()
del pooled, pool  # PyCUDA ends the process if they outlive the context

scale = cuda.module_from_buffer(PTX).get_function("ndbridge_scale_f32")
scale(array.gpudata, np.float32(2), np.uint64(12), block=(32, 1, 1), grid=(1, 1))
assert (array.get() == 2 * values).all()

managed = cuda.managed_empty((4,), np.float32, mem_flags=cuda.mem_attach_flags.GLOBAL)
managed[:] = 4
pinned = cuda.pagelocked_empty((4,), np.float32)
pinned[:] = 3
back = cuda.pagelocked_zeros((4,), np.float32)
memory = cuda.mem_alloc(pinned.nbytes)
stream, begun, ended = cuda.Stream(), cuda.Event(), cuda.Event()
begun.record(stream)
cuda.memcpy_htod_async(memory, pinned, stream)
cuda.memcpy_dtoh_async(back, memory, stream)
ended.record(stream)
assert not ended.query() and (back == 0).all()  # work is late
ended.synchronize()
assert (back == 3).all() and ended.time_since(begun) > 0
assert len(cuda.mem_get_ipc_handle(memory)) == 64

other = cuda.Device(0).make_context()
elsewhere = gpuarray.to_gpu(values)
assert (elsewhere.get() == values).all()
del elsewhere
other.pop()
other.detach()
assert cuda.Context.get_current() is not None
