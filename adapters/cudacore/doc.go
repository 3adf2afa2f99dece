// Package cudacore knows how cuda.core, NVIDIA's Python package for CUDA itself, hands out its memory, from
// version 1.0 on.
//
// A Buffer speaks DLPack, and so does a StridedMemoryView, which stands for the array of another
// framework. So the plan is DLPack. Neither has the CUDA array interface.
//
// What cuda.core does, and what follows from it:
//
//   - A buffer has a size and nothing else. It comes as bytes.
//   - __dlpack__ orders nothing, whatever stream it is given, and there is no current stream. So all work
//     in the memory's context is waited for, for buffers that are published too, whatever sync says.
//   - Memory goes back to its pool when a buffer does, so a lease holds what DLPack handed out.
//   - Which memory resource a buffer is from decides how it crosses. The usual pool of a device is made
//     without handles: its memory is copied once on the GPU, with the reason "not-exportable". That of
//     DeviceMemoryResource(device, options=DeviceMemoryResourceOptions(ipc_enabled=True)) is shared.
//     Pinned memory, which DLPack calls type 3, is the host's, and is read as that.
//
// Some of its habits need no quirk, because nobody asks for what it refuses: a copy, and another device.
package cudacore
