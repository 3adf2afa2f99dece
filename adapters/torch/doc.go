// Package torch knows how PyTorch hands out its tensors, from version 1.13 on.
//
// PyTorch speaks DLPack, and for tensors on a GPU the CUDA array interface, which says less: it has no
// stream, names bfloat16 "<V2" or even float16 (2.5 and 2.6), and has no floats of 8 bits. So the plan is
// DLPack. PyTorch speaks it in two ways: from C since 2.10, with a
// table of functions in torch.Tensor, and from Python with __dlpack__, which checks more. The plan
// takes the first where there is one, and the quirks below add the checks.
//
// What PyTorch does, and what follows from it:
//
//   - Tensors that require a gradient are refused by __dlpack__. What detach() gives has the same
//     memory, so that is read.
//   - conj() and its imaginary part only set a bit: the memory holds other numbers. They are refused,
//     since only a copy could be right, and the program should say so.
//   - Sparse, oneDNN, nested and quantized tensors are not what DLPack means, and are refused with what
//     to publish instead.
//   - Fake and meta tensors, tensors inside of a transform, and subclasses that merely wrap others have
//     no memory. Some of them are exported with a NULL pointer.
//   - bool came to DLPack with 2.2, the floats of 8 and 4 bits with 2.10. Before, they are
//     exported as uint8.
//   - The integers of less than a byte say that they are of 8 bits.
//   - max_version, dl_device and copy came with 2.9. Before, they are unknown keywords, and the capsule
//     is of the old kind; no tensor is read-only, so nothing is lost.
//   - The stream -1 is an error for the CPU in 2.9, and in no other version.
//
// And on a GPU:
//
//   - The current stream is the calling thread's: what __dlpack__ orders when it is called by another
//     thread, as here, is not the program's work. So all work in the tensor's context is waited for
//     unless the configuration says sync = "stream". A tensor that is published is ordered by the stream
//     that is current there.
//   - While a stream is being captured into a graph CUDA lets nobody wait for all work. So a look at a
//     tensor waits for the capture's end; what was published is served at once. Graphs have pools of their own, in which a replay writes to the same memory again;
//     a view shows that.
//   - Which allocator is in use decides how tensors cross. PyTorch's own has handles, and is shared, by
//     the descriptors of its physical memory with expandable_segments. The memory of
//     PYTORCH_ALLOC_CONF=backend:cudaMallocAsync has none: it is copied once on the GPU, with the reason
//     "not-exportable".
//   - The allocator gives memory to the next tensor as soon as one goes, so a lease of a tensor on a GPU
//     holds what DLPack handed out.
//   - Since 2.9 __dlpack__ refuses a tensor that is on another GPU than the calling thread's current one.
//     DLPack from C does not, which is asked first since 2.10, unless sync = "stream" needs the other.
//   - pin_memory() makes host memory, which __dlpack_device__ calls type 3 and the capsule the CPU's. It is
//     read as that.
//
// Some of PyTorch's habits need no quirk, because the readers are as lenient for everybody, or never ask
// for it: the streams 0 and 2, which __dlpack__ refuses on a GPU; pointers
// that are NULL for tensors without elements, any stride along axes of one element, and capsules
// stamped with a newer version than the one that was asked for. Expanded tensors are read-only because
// their elements overlap.
//
// Subclasses are read as torch.Tensor reads them. So nn.Parameter needs nothing of its own, and a
// subclass's __torch_function__ has no part in it.
//
// PyTorch neither moves nor reuses its own memory while a storage is alive, and memory in the shared
// heap, in a file, or copied stays as it is when the storage goes. So a lease does not hold a tensor on
// the CPU,
// and torch.utils.swap_tensors, which wants to be alone with it, works while it stands. But a tensor may
// stand for memory that is not PyTorch's: an array of JAX, which may use the memory again when PyTorch
// lets go of it. Then a lease holds what DLPack handed out.
package torch
