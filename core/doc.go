// Package core is the vocabulary of ndbridge: what an array of another process is, and how to look at it.
//
// A [LayoutSpec] is a description that somebody gave; [NewLayout] checks it and makes a [Layout], which
// can be trusted. A layout over [Memory] is a [View]: what users hold, read with [Slice], [Values],
// [Rows], [At] and [Copy], cut with Sub, Select, Step and Transpose without a copy, and close. A View is of one
// array in one place for as long as it lives: it never becomes a view of something else, and once closed it
// stays closed.
//
// [Producer] is the contract between the side that has arrays and the side that looks at them. Both
// ends of a connection implement it, and coretest checks it.
//
// An error has a category (ErrNotFound and so on), which it matches with errors.Is and which [Category] names.
// Nearly every error is or wraps an [*Error], which says what was tried, on what, and what to do about it;
// hostplugin's ConfigError lists mistakes instead.
//
// The package uses the standard library only, and no cgo.
package core
