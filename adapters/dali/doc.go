// Package dali knows how NVIDIA DALI hands out its tensors and batches, from version 1.53 on. It
// needs no GPU: a pipeline with device_id=None runs without one.
//
// DALI speaks DLPack and, with typestrs of its own, the array interface, or on a GPU the CUDA array
// interface (version 2, without a stream). The plan is DLPack, and the array interface for what has no
// __dlpack__.
//
// What DALI does, and what follows from it:
//
//   - What a pipeline gives for one output is a batch, a TensorListCPU or TensorListGPU, which speaks no
//     protocol. If its samples have one shape and lie one after another, it has a tensor for all of them,
//     over the same memory. A sample is a tensor in any case, and has a name: out[0][3].
//   - The memory of an output is given back when nobody holds the output, to be used for another. What
//     DLPack handed out counts as holding it. So a lease holds that, and the view keeps its values.
//   - A pipeline without the dynamic executor (exec_dynamic=False) writes to the memory of an output
//     once it is released, which the next run does, whoever holds it; and nothing tells such an output
//     from others. A view of it is as live as a NumPy array over it would be: to keep its values,
//     publish a copy, out[0].as_array().
//   - The elements of an output can be members of DALI's enumerations, for which it has no number that
//     it would tell.
//   - Tensors of the dynamic mode are computed when they are first asked for, and this asks.
//   - On a GPU all work in the context is waited for: a pipeline has streams of its own, and none is
//     current.
//
// Some of DALI's habits need no quirk, because the readers are as lenient for everybody: the capsule is
// the unversioned one whatever max_version asks for, the device's type is a member of an enumeration,
// typestrs are those of the struct module ("=f"), and a tensor without elements has a pointer.
package dali
