// Package stats sums arrays up: counts of NaN and infinities, extremes, mean, deviation, norm and histogram of a
// [core.View], and small pictures and lines of large arrays.
//
// All elements become float64: complex numbers by their magnitude, bools as 0 and 1. Integers beyond 2^53 are rounded.
// NaN and infinities are counted, and stay out of every other figure; so one bad element does not hide the others.
//
// Everything is exact unless a sample is asked for ([Options.Sample]). Arrays are read where they lie, in the order of
// memory and on all cores; nothing is allocated for single elements. Elements that repeat others (an axis of stride 0)
// are read once and counted as often as they appear.
//
// Memory of a GPU is summed up by that GPU, in a host that is built with the tag "cuda": exact or sampled by the same rule, with the same
// figures but for the rounding of the sums. Nothing is copied but what the GPU has found. Cells, and differences to a base that the GPU does not reach, are made of
// a copy; so are figures in a host without CUDA, where a sample of memory that the CPU cannot read is every k-th element.
//
// # Memory that is being written
//
// A view is live: the program may write while it is read. [Summary.Torn] says that the figures may mix elements of
// different moments. Extremes, counts and sums are then those of elements that each were there at some moment; of complex
// numbers, that holds for each part, and for the elements of unaligned arrays it does not hold. A copy ([core.View.Copied]) is not
// written to any more, but what it was made of may have been written meanwhile by threads that do not hold Python's lock.
//
// All functions are safe for concurrent use.
package stats
