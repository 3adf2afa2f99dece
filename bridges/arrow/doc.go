// Package arrow hands views to Apache Arrow without a copy: as arrays and as tensors.
//
//	samples, err := arrow.Array(view)
//	...
//	defer samples.Release()
//
// # Lifetimes
//
// Arrow counts who uses an array, and so does a view. What these functions return holds the memory of the view: it stays
// until the view is closed and Release was called as often as Arrow's rules demand, in any order. So a view may be closed at once. Who forgets
// to call Release keeps the memory, and the program's lease, until the session is closed: then the memory must not be
// touched any more.
//
// Arrow takes arrays for unchangeable, but a view is live. What the program writes to the array meanwhile appears in Arrow's, too. Arrays that
// a program publishes and leaves alone stay as they are.
//
// Package flight, below this one, serves the arrays of a program to clients of Arrow Flight.
package arrow
