// Package cuda lets a host's kernels work on arrays that a program holds on a GPU, in place.
//
// A session of package hostplugin returns a [core.View] of such an array. A [Stream] waits for the
// program's GPU work before it touches the view, [Function.Launch] runs a kernel on views wherever they
// lie, and [Copy] and [Put] move elements between a view and Go's memory. [Pin] makes a view in host memory
// an argument for kernels, too.
//
// Only binaries built with the tag "cuda" have CUDA. All others, and those that find no driver, get errors
// that match [core.ErrUnsupported] and state the reason and the remedy: see [Available]. The package does
// not touch the driver before a function needs it.
//
// The names are those of the CUDA driver API. All functions and methods are safe for concurrent use. Their
// errors match the categories of package core and keep the driver's call, number and text.
package cuda
