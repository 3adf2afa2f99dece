// Package render draws arrays for people: PNG files, pictures made of characters, numbers, and the statistics beside them.
//
// It reads views of any layout in place and draws what it can of any size: an array that has more
// elements than the picture has points is averaged over areas, and of a very large one only evenly
// spread samples are read. Values that no picture can show (NaN) stay empty; complex numbers are
// drawn by their magnitude; elements whose meaning is unknown ([core.DType.Opaque]) only have bytes.
//
// Everything here is a pure function of a view and safe for concurrent use.
package render
