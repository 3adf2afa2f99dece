// Package kit is what a producer of arrays stands on, whether it lives inside a Python interpreter or
// is an ordinary Go program: a table of leases and of the segments that they stand on, the choice of
// the route by which an array's memory reaches another process, shared memory for what must be
// copied, and the server that a host talks to.
//
// A producer describes an array of its own process as an [Array], asks a [Router] for its
// [Placement], and enters that into its [Leases]. A producer whose arrays lie in files needs no
// router: it grants leases on a [FileSegment].
//
// The package contains neither cgo nor Python; adapters/kit/program has what Python programs need.
package kit
