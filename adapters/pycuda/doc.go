// Package pycuda knows how PyCUDA hands out its arrays, from version 2022.1 on.
//
// PyCUDA speaks the CUDA array interface, and for arrays only: no DLPack. So the plan is that interface.
//
// What PyCUDA does, and what follows from it:
//
//   - It works in a context of its own, not in the primary one that CUDA's runtime uses. The driver knows
//     the context of each pointer, and that one is used.
//   - It has no current stream: a call that is given none goes to the legacy default stream, and the
//     interface always says stream None, whatever was done to the array on whatever stream. So all work
//     in the array's context is waited for, for arrays that are published too.
//   - Memory is freed only by the thread in which its context is current: on another one an allocation
//     stays for ever, with a warning, and one of a pool ends the program. So what a lease held is given
//     back on the main thread.
//   - Its pools give memory to the next array as soon as an array goes, so a lease holds the array.
//   - Allocations have no shape. They are refused with what to publish in their place.
//   - Records come without their fields, and types of other packages without their names; the array's
//     dtype has both.
//   - What pagelocked_empty and managed_empty give are arrays of NumPy, and are read as such.
//
// Some of PyCUDA's habits need no quirk, because the readers are as lenient for everybody: strides are
// always given, the stream entry is there and None, and the pointer of an array without elements is 0.
// An array whose memory was freed by hand still has its address; the driver is asked about that before
// anything is done with it.
package pycuda
