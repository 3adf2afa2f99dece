// Package tensorflow knows how TensorFlow hands out its tensors and variables, as far as they are in the
// CPU's memory.
//
// TensorFlow speaks DLPack, and the buffer protocol, which says nothing that DLPack does not. So the plan
// is DLPack and nothing else.
//
// What TensorFlow does, and what follows from it:
//
//   - Tensors are immutable. The capsule is the unversioned one, whatever max_version asks for, and does
//     not say so. An array that comes in it is read-only all the same.
//   - A tensor of strings has __dlpack__ as well, and calling it ends the process. So element types are
//     looked at first.
//   - The memory of a tensor that nobody else holds is used again by the operation that consumes it. So a
//     lease holds what DLPack handed out.
//   - A variable speaks no protocol, but has a value, a tensor over the same memory. While that is held,
//     an assignment gives the variable other memory. So a view of a variable is one of its value at that
//     moment.
//   - Sparse and ragged tensors are several arrays, and tensors inside of a tf.function are none.
package tensorflow
