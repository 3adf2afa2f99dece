// Package core is what a Go program needs to look at arrays of another process.
//
// The words:
//
//   - A [LayoutSpec] describes an array: element type, shape, strides, place. It is plain data that nobody has
//     checked.
//   - A [Layout] is a checked LayoutSpec. It never changes.
//   - A [Memory] is one stretch of memory that is visible in this process.
//   - A [View] is a Layout over a Memory, for as long as the View is open. Users hold Views.
//
// [Slice], [Values], [Rows], [At] and [Strided] read the elements in place; [Set] writes one. [Copy], [CopyBytes]
// and [Put] copy, also from and to memory of a GPU. View.Sub, Select, Step, Transpose and As derive another View of
// the same memory without a copy. A View always shows the same place: it never becomes a View of something else,
// and once closed it stays closed.
//
// Every error has one category (ErrNotFound and so on), which it matches with errors.Is and which [Category]
// names. Nearly every error is or wraps an [*Error], which says what was tried, on what, and what to do about it;
// hostplugin's ConfigError lists mistakes instead.
//
// Package contract, below this one, is what the two sides of a connection promise each other. Package coretest
// has fakes, a leak check, and the contract as a test suite.
//
// The package uses the standard library only, and no cgo.
package core
