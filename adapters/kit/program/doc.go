// Package program is what an adapter consists of: [Adapter] and the interfaces of what only some frameworks can, the [Plan]
// by which an object is read, and the [Table] of quirks that edit it.
//
// An adapter holds decisions and carries nothing out. Its methods are called with the GIL, and what its plans find is checked
// before it is used.
package program
