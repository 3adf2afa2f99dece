// Package kit is what a producer of arrays stands on, whether it lives inside a Python interpreter or
// is an ordinary Go program: a table of leases and of the segments that they stand on, and the server
// that a host talks to.
//
// A producer puts each array into a segment, a [FileSegment] if it lies in a file or else a [DataSegment], and
// grants a lease on it ([Leases.Grant]). examples/npyfile is one.
//
// The package contains neither cgo nor Python; adapters/kit/program has what adapters for Python frameworks need.
package kit
