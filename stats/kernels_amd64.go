package stats

import "golang.org/x/sys/cpu"

// fast reports whether the loops of kernels_amd64.s run on this processor.
func fast() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// step is how many elements the loops take at a time; n is a positive multiple of it.
const step = 16

// widenAVX2 makes float64 of float32.
//
//go:noescape
func widenAVX2(dst *float64, src *byte, n int)

// passAVX2 is pass.
//
//go:noescape
func passAVX2(xs *float64, n int, out *lanes)

// squaresAVX2 is squares.
//
//go:noescape
func squaresAVX2(xs *float64, n int, mean float64, out *[4]float64)

// indexAVX2 gives the bin of each number; a negative one for a number that is outside, or so near to an edge that rounding
// may have put it on the wrong side.
//
//go:noescape
func indexAVX2(xs *float64, n int, p *placing, index *int32)

// passSingleAVX2 sums up float32. It has the memory fetch what lies a page ahead, since some processors look no further than to the end of
// a page by themselves.
//
//go:noescape
func passSingleAVX2(src *byte, n int, shift float64, out *singleLanes)

// pairsSingleAVX2 gives the bins of each two neighbours, the second's after that of the first, in the lowest bits of a word; and for
// each number one bit that says whether its bin is right.
//
//go:noescape
func pairsSingleAVX2(src *byte, n int, p *placingSingle, pairs *uint64, sure *uint16)
