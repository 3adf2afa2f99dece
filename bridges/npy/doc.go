// Package npy writes views as files of NumPy's .npy format, without a copy of the whole array, and reads such files.
//
//	note, err := npy.Write(ctx, file, view)
//
// numpy.load reads what Write writes. The view may be of any layout and on any device from which core.Copy can copy. What
// the program writes to the array meanwhile may be in the file in part, with whole numbers as package core says of
// [core.View]; what it publishes is whole.
package npy
