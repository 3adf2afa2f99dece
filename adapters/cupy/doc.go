// Package cupy knows how CuPy hands out its arrays, from version 13 on.
//
// CuPy speaks DLPack and the CUDA array interface. The plan is DLPack, which says whether memory is
// managed, and the interface for what DLPack cannot say.
//
// What CuPy does, and what follows from it:
//
//   - Its current stream is the calling thread's: what __dlpack__ orders when it is called by another
//     thread, as here, is not the program's work. So all work in the array's context is waited for
//     unless the configuration says sync = "stream". An array that is published is ordered by the
//     stream that is current there.
//   - Its pool gives memory to the next array as soon as an array goes, so a lease holds what the
//     protocol handed out.
//   - Which memory an array is in decides how it crosses. That of the usual pool has a handle, and is
//     shared. Managed memory, and that of malloc_async, whose pool is made without handles, have none:
//     they are copied once on the GPU, with the reason "not-exportable". cupy.cuda.set_allocator() with a
//     MemoryPool of malloc, which is what CuPy starts with, has them shared.
//   - cupyx.empty_pinned() and its kind give arrays of NumPy, and are read as such.
//
// Some of CuPy's habits need no quirk, because the readers are as lenient for everybody, or never ask for
// it: strides are None where an array is row-major; the interface has the version and the stream that the
// environment and the thread give it; managed memory is DLPack's type 13; the pointer of an array without
// elements is 0. The stream 0, at which CuPy warns, and a copy on the GPU, which it refuses, are nothing
// that the standards let a consumer ask for.
package cupy
