// Package pyarrow knows how PyArrow hands out its arrays, tensors and buffers, from version 15 on, as far
// as they are in the CPU's memory.
//
// Arrays and tensors speak DLPack, buffers and tensors the buffer protocol.
//
// What PyArrow does, and what follows from it:
//
//   - Arrays are immutable, and since version 26 their capsule says so.
//   - Elements that are missing are in a bitmap of their own, and truth values are bits. DLPack has neither.
//   - Text, lists, dates and decimals have no DLPack type. What lies in one piece can be had as a buffer:
//     x.buffers()[1].
//   - A chunked array of one chunk is that chunk. Tables and record batches are columns.
//   - Its memory comes from a pool that does not ask malloc, so that views of it are copies, unless the
//     program runs with ARROW_DEFAULT_MEMORY_POOL=system. An array made from NumPy's without a copy is in
//     NumPy's memory.
//
// Since arrays cannot change, a lease could do without holding them, but for memory that others own and
// lent to PyArrow; so it holds what the protocol handed out.
package pyarrow
