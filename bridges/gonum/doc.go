// Package gonum hands views to Gonum without a copy: as matrices and vectors of its package mat, and as the structures
// that its BLAS takes.
//
//	samples, err := session.View(ctx, "samples", hostplugin.Writable()) // float64, two axes
//	...
//	m, err := gonum.Dense(samples)
//	...
//	m.Scale(2, m) // in the program's own array
//
// # What can be handed over
//
// Gonum's matrices are rows of elements that follow each other, at a fixed distance from row to row. Crops of matrices are
// such; with gaps between the elements of a row, or with rows or columns in reverse, they are not. Matrix reads those, too,
// element by element. A matrix in column-major order is the transpose of one that can be handed over: Matrix says so to
// Gonum, whose multiplication then needs no copy.
//
// # Lifetimes
//
// What these functions return is the memory of the view. It must not be touched after the view was closed. What is to
// outlive the view is held by [core.View.Acquire], until its release is called. What the program writes meanwhile appears,
// even in the middle of a multiplication.
//
// Dense and Vec want a writable view, for Gonum may write to what they return. Matrix wants none: what it returns has no
// method that writes. The structures of BLAS do not say whether they may be written: to write to those of a view that is not
// writable faults.
package gonum
