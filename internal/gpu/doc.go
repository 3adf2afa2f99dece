// Package gpu tells what this process sees of its GPUs, for both sides of a session: whether there are
// any, which ones, what memory an address lies in, and the primary contexts that a host works in.
//
// Plugins ask it about the arrays of a program. [Inspect] asks the driver which allocation an address
// lies in, what kind of memory that is, and how another process may reach it. The package believes only
// what the driver confirms.
//
// Processes may number the same devices differently, so a [contract.UUID] identifies a device.
//
// Only binaries built with the tag "cuda" have CUDA. All others, and those that find no driver, get errors
// that match [core.ErrUnsupported] and state the reason and the remedy: see [Available]. The package
// does not touch the driver before a function needs it: a program may fork until it uses CUDA itself.
//
// All functions are safe for concurrent use. Their errors match the categories of package core and keep
// the driver's call, number and text.
package gpu
