// Package torch knows how PyTorch hands out its tensors, from version 1.13 on, as far as they are in
// the CPU's memory.
//
// PyTorch speaks one protocol for them, DLPack, and speaks it in two ways: from C since 2.10, with a
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
// Some of PyTorch's habits need no quirk, because the readers are as lenient for everybody: pointers
// that are NULL for tensors without elements, any stride along axes of one element, and capsules
// stamped with a newer version than the one that was asked for. Expanded tensors are read-only because
// their elements overlap.
//
// Subclasses are read as torch.Tensor reads them. So nn.Parameter needs nothing of its own, and a
// subclass's __torch_function__ has no part in it.
//
// PyTorch neither moves nor reuses its own memory while a storage is alive, and memory in the shared
// heap, in a file, or copied stays as it is when the storage goes. So a lease does not hold the tensor,
// and torch.utils.swap_tensors, which wants to be alone with it, works while it stands. But a tensor may
// stand for memory that is not PyTorch's: an array of JAX, which may use the memory again when PyTorch
// lets go of it. Then a lease holds what DLPack handed out.
package torch
