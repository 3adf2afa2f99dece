// Package routes chooses the route by which the memory of an [Array] of this process reaches another one: a [Router] finds the
// shared heap's block, the mapped file or the GPU's memory that it lies in, and copies what none of them has. A [Placement] is
// what a lease is made of.
//
// The package contains neither cgo nor Python.
package routes
