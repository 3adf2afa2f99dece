// Package export is the program's side of GPU memory. It orders the program's work for other processes,
// exports allocations by handles, and copies arrays whose memory has no handle. Plugins use it through
// adapters/kit.
package export
