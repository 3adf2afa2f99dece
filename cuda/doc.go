// Package cuda is what this module does with GPUs, on both sides of a session: it says what a pointer
// points to, and moves memory and order between processes through the CUDA driver.
//
// Programs hold arrays in memory that their frameworks allocated. [Inspect] asks the driver about such
// an address: what kind of memory it is, whose, from where to where, and how another process may reach
// it. Nothing is believed that the driver does not confirm.
//
// Hosts get views of such memory from a session. A [Stream] waits for what a program's GPU has still to
// do, [Launch] runs a kernel on views wherever they lie, and [Copy] and [Put] move elements between a
// view and Go's memory; an [Importer] is what sessions open the memory with.
//
// Devices are told apart by their [contract.UUID]; indices differ between processes.
//
// Binaries have CUDA if they were built with the tag "cuda"; all others, and those that find no driver,
// get errors that match [core.ErrUnsupported], with the reason and the remedy: see [Available].
// Nothing touches the driver before it is asked for: a program may fork until it uses CUDA itself.
//
// All functions may be called at any time from any goroutine. Their errors match the categories of
// package core and keep the driver's call, number and text.
package cuda
