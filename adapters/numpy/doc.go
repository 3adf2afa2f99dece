// Package numpy knows how NumPy hands out its arrays, from version 1.17 on.
//
// NumPy speaks three protocols on an ndarray: DLPack (since 1.22), the array interface, which it
// invented, and Python's buffer protocol. The standards' first choice is DLPack, and the plan begins
// with it; the quirks below say where it does not do, and nearly all of them lead to the array
// interface, which can say whatever a NumPy array can be: a foreign byte order, dates, records, byte
// strides, read-only memory.
//
// What NumPy does, and what follows from it:
//
//   - __dlpack__ takes no stream but None: any other value, also the -1 by which a consumer says that
//     it will do without synchronization, is an error (RuntimeError before 2.5, ValueError since). So
//     the argument is left out.
//   - max_version, dl_device and copy came with 2.1. Before, they are unknown keywords, the capsule is
//     of the old kind, and a read-only array is refused because such a capsule cannot say that it is
//     one. From 2.1 on capsules are stamped 1.0, whatever was asked for.
//   - bool came to DLPack with 1.25.
//   - DLPack carries native numbers only. Dates, text, records and other byte orders are refused, and
//     so are the types that packages such as ml_dtypes add; the array interface says no more of those
//     than their size, so the name of the dtype decides.
//   - DLPack counts strides in elements. A field of a packed record has strides that are not a
//     multiple of its size, and is refused.
//   - Masked arrays export their data by every protocol, and nothing says that there is a mask.
//   - Scalars have no __dlpack__. Before 2.5 their array interface describes a copy that lives as long
//     as the dictionary, and calls it writable.
//   - Objects, and the variable-width strings of NumPy 2, consist of pointers into this process.
//
// Some of NumPy's habits need no quirk, because the readers are as lenient for everybody: strides that
// are NULL for contiguous arrays (before 2.4), pointers that are not NULL and strides of zero for
// arrays without elements (since 2.4), and data that is not aligned.
//
// NumPy neither moves nor reuses the memory of an array that is alive, and memory in the shared heap, in
// a file, or copied stays as it is when the array goes. So a lease holds no reference to the array, and
// ndarray.resize works while it stands.
package numpy
