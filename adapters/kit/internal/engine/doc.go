// Package engine makes a running Python program a producer of its arrays.
//
// A name is followed to its object; the adapter of the object's framework plans how to read it; the
// plan's protocols are asked, and what they say is checked; kit finds the way to the host. Everything
// happens under the GIL and under a context, so that no object can hold up more than its own request.
//
// What objects say is not trusted: it becomes a layout only after it was checked, and memory is looked
// up before it is shared or copied. Only the structs of DLPack capsules are followed as they are, since
// they belong to the program's own C code.
package engine
