package stats_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestDifferenceOfHalves subtracts before anything is left out of elements: the phase of complex numbers, and the last bits of large whole ones.
func TestDifferenceOfHalves(t *testing.T) {
	t.Parallel()
	const big = 1 << 62
	difference(t, "c8", 4, []complex64{3, 4i, 1 + 1i}, []complex64{4i, 4i, 1 + 2i}, 5, 0, 1)
	difference(t, "c16", 8, []complex128{3, 4i, 1 + 1i}, []complex128{4i, 4i, 1 + 2i}, 5, 0, 1)
	difference(t, "i8", 8, []int64{big + 1, -big, math.MaxInt64}, []int64{big, -big - 1, math.MinInt64}, 1, 1, 1<<64-1)
	difference(t, "u8", 8, []uint64{3 * big, 3 * big, 5}, []uint64{3*big + 1, 3 * big, 1 << 32}, -1, 0, 5-1<<32)
	difference(t, "i4", 4, []int32{7, 7, 7}, []int32{8, 7, -7}, -1, 0, 14)
}

// difference holds what an array is less another one, as it is, and with the parts of the elements of both in the other order of bytes.
func difference[T core.Element](t *testing.T, kind string, part int, now, before []T, want ...float64) {
	t.Helper()
	views := [][2]*core.View{{coretest.NewView(t, now), coretest.NewView(t, before)}, {}}
	foreign := ">"
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		foreign = "<"
	}
	for i, v := range views[0] {
		raw := make([]byte, v.NBytes())
		if _, err := core.CopyBytes(t.Context(), raw, v); err != nil {
			t.Fatal(err)
		}
		for p := range slices.Chunk(raw, part) {
			slices.Reverse(p)
		}
		opaque, err := core.Opaque(v.DType().Size())
		if err != nil {
			t.Fatal(err)
		}
		views[1][i] = bytesView(t, raw, core.LayoutSpec{DType: opaque, Shape: v.Shape(), Tag: foreign + kind}, nil)
	}
	for _, v := range views {
		c, err := stats.Line(t.Context(), v[0], 0, nil, len(want), &stats.CellOptions{Base: v[1]})
		if err != nil {
			t.Fatal(err)
		}
		s := of(t, v[0], &stats.Options{Base: v[1], Bins: 4})
		if have := fmt.Sprint(c.Mean, s.Min, s.Max); have != fmt.Sprint(want, slices.Min(want), slices.Max(want)) {
			t.Errorf("%v less %v is %v: %s, not %v", now, before, v[0].Layout(), have, want)
		}
	}
}
