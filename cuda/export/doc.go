// Package export is a program's side of GPU memory: it orders the program's work for other processes,
// makes handles of its allocations, and copies what has none. Plugins use it, through adapters/kit.
package export
