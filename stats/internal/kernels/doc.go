// Package kernels sums arrays up in the memory of a GPU, where they are: what package stats has a GPU do. kernels.cu is the
// source of the kernel, and compile.py makes the PTX of it that every driver compiles for the GPU that is there.
//
// Only a host that is built with the tag "cuda" imports it.
package kernels
