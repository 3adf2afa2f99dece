// Package warp knows how NVIDIA Warp hands out its arrays, from version 1.3 on.
//
// Warp speaks DLPack, and for what DLPack cannot say __array_interface__, or on a GPU
// __cuda_array_interface__. So the plan is DLPack, and a quirk puts the other in its place.
//
// What Warp does, and what follows from it:
//
//   - __dlpack__ takes a stream and nothing else, in every version.
//   - Arrays of vectors, matrices, quaternions and transforms have the components as further axes:
//     what Warp calls four vec3 is a view of 4 x 3 numbers. NumPy sees them in the same way.
//   - Arrays of structures are not for DLPack. The array interfaces describe their fields.
//   - Indexed arrays and those over Fabric's data pick their elements from several places, which no
//     protocol can say.
//   - Whether an array wants a gradient is nobody's business but Warp's: the values are in its memory
//     all the same, and the gradient is an array of its own, x.grad.
//   - An array may stand for memory that is not Warp's: an array of NumPy, PyTorch or JAX, of which the
//     latter may use the memory again when Warp lets go of it. So a lease holds what the protocol handed
//     out, and with it the array. Warp has no means to ask whose memory it is.
//   - Warp does not know read-only memory. An array that it made over a read-only one of NumPy can be
//     written to, by Warp's own kernels and by a host that asks for that.
//   - On a GPU __dlpack__ orders what is on the device's current stream, which is one for all threads, and
//     need not be the one that the array was written on. So all work in the array's context is waited
//     for unless the configuration says sync = "stream". An array that is published is ordered by the
//     stream that is current then.
//   - Warp allocates from a memory pool of CUDA's, which is made without handles: arrays from it are copied
//     once on the GPU, with the reason "not-exportable". wp.set_mempool_enabled(device, False), before
//     the arrays are made, has them shared.
//
// Some of Warp's habits need no quirk, because the readers are as lenient for everybody: it leaves out
// the strides of contiguous arrays, always gives the unversioned capsule, and has a pointer for arrays
// without elements. It accepts -1 for a stream, which is what consumers say that order work on their own.
// And its array interface calls bfloat16 "<u2", which does no harm where DLPack is asked.
package warp
