// Package jax knows how JAX hands out its arrays, from version 0.4.18 on.
//
// JAX speaks DLPack, for some arrays on the CPU the buffer protocol, and for some on a GPU the CUDA array
// interface (version 2: no strides, no stream, and it waits for nothing). Those say nothing that DLPack
// does not. So the plan is DLPack and nothing else.
//
// What JAX does, and what follows from it:
//
//   - Its arrays are immutable. Until 0.12 its capsule is the unversioned one, whatever max_version asks
//     for, and does not say so. An array that comes in it is read-only all the same: what wrote into it
//     would change what JAX has compiled, cached and given to others.
//   - max_version, dl_device and copy came with 0.4.27. Before, they are unknown keywords.
//   - __dlpack__ of an array on the CPU takes no stream but None. It waits until the array is computed,
//     and lets other threads run Python meanwhile.
//   - On a GPU it has the stream that it is given wait for the work that makes the array, on whatever
//     thread and stream that is, and for nothing else. So that is what is waited for, unless the
//     configuration says sync = "device". It does not know -1.
//   - The memory of a GPU's arrays is of one allocation, three quarters of the GPU unless
//     XLA_PYTHON_CLIENT_PREALLOCATE=false, which is shared by the descriptor of its physical memory. Every
//     array is read-only, and is mapped so.
//   - The memory of an array that is deleted, or donated to a compiled function, is used again, the
//     latter in place. Neither happens while what DLPack handed out is held: on the CPU the function gets a
//     copy of a donated array then. So a lease holds it, and the view keeps its values. On a GPU, the
//     program gets an error instead, even if it is held only for a moment. So there JAX is made to copy an
//     array that was not published, and the lease holds the copy, with the reason "may-be-donated".
//   - An array over several devices is several pieces of memory. Each shard is an array of its own,
//     with a name: x.addressable_shards[1].data. The CPU can be several devices too.
//   - Tracers, random keys, references and shapes pass for arrays here and there, and have no memory.
//   - The integers of less than a byte are not exported in any version. The floats of 8 bits are since
//     0.5.3, and so is float4_e2m1fn, of which two elements take a byte. bool was uint8 until 0.4.23.
//
// Some of JAX's habits need no quirk, because the readers are as lenient for everybody, and look at
// what is there rather than at what was asked for: the name of the capsule; the number of the device,
// which counts the CPU's; pointers that are not NULL for arrays without elements; the packing of
// float4_e2m1fn. And some do no harm because nobody asks for it: versions below 0.5, which are refused,
// and another device, for which JAX makes a copy and says nothing.
package jax
