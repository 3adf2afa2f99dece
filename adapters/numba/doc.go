// Package numba knows how Numba hands out its arrays on GPUs (numba.cuda), from version 0.60 on, by
// Numba's own module or by that of the package numba-cuda, which takes its place.
//
// Device arrays speak the CUDA array interface and nothing else. So the plan is that interface, for mapped
// and managed arrays too, which are arrays of NumPy as well: read as those nothing would wait for the GPU.
// On the CPU Numba has no arrays of its own. What pinned_array gives is NumPy's alone.
//
// What Numba does, and what follows from it:
//
//   - An array that is bound to no stream says stream None, though work on the default stream may still
//     run; and one that is bound to a stream names that one, whichever its last kernel was launched on.
//     So all work in the array's context is waited for, for arrays that are published too: Numba has no
//     current stream.
//   - Arrays that were broadcast pass for dense ones. They are refused.
//   - Records come without their fields, and types of other packages without their names; the array's
//     dtype has both. A device record is a view without axes.
//   - Memory is freed when an array goes, so a lease holds it. That of the usual memory manager has a
//     handle, and is shared; mapped and managed memory has none, and is copied.
//
// Some of Numba's habits need no quirk, because the readers are as lenient for everybody: strides are None
// where an array is row-major, the stream is None, and the pointer of an array without elements is 0.
package numba
