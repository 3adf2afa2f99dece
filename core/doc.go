// Package core is the vocabulary of ndbridge: what an array of another process is, and how to look at it.
//
// A [LayoutSpec] is a description that somebody gave; [NewLayout] checks it and makes a [Layout], which
// can be trusted. A layout over [Memory] is a [View]: what users hold, read with [Slice], [Values],
// [Rows], [At] and [Copy], cut with Sub, Select, Step and Transpose without a copy, and close. A closed
// View may be opened again, for another array or the same.
//
// [Producer] is the contract between the side that has arrays and the side that looks at them. Both
// ends of a connection implement it, and coretest checks it.
//
// Every error is an [*Error], matches one of the categories (ErrNotFound and so on) with errors.Is, and
// says what to do about it.
//
// The package uses the standard library only, and no cgo.
package core
