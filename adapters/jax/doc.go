// Package jax knows how JAX hands out its arrays, from version 0.4.18 on, as far as they are in the
// CPU's memory.
//
// JAX speaks DLPack, and for some arrays the buffer protocol, which says nothing that DLPack does not.
// So the plan is DLPack and nothing else.
//
// What JAX does, and what follows from it:
//
//   - Its arrays are immutable. Until 0.12 its capsule is the unversioned one, whatever max_version asks
//     for, and does not say so. An array that comes in it is read-only all the same: what wrote into it
//     would change what JAX has compiled, cached and given to others.
//   - max_version, dl_device and copy came with 0.4.27. Before, they are unknown keywords.
//   - __dlpack__ of an array on the CPU takes no stream but None. It waits until the array is computed,
//     and lets other threads run Python meanwhile.
//   - The memory of an array that is deleted, or donated to a compiled function, is used again, the
//     latter in place. Neither happens while what DLPack handed out is held: of a donated array the
//     function gets a copy then. So a lease holds it, and the view keeps its values.
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
