package stats

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestFastLoops compares the loops for this processor with those for all, on numbers of all lengths, signs and sizes.
func TestFastLoops(t *testing.T) {
	t.Parallel()
	if !fast() {
		t.Log("this processor has no AVX2")
	}
	for n := range 100 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = math.Floor(math.Sin(float64(i*n))*8) / 4
		}
		sum, low, high, negative, zero := pass(xs)
		wantSum, wantLow, wantHigh, wantNegative, wantZero := 0.0, math.Inf(1), math.Inf(-1), 0, 0
		squared := 0.0
		for _, x := range xs {
			wantSum += x
			wantLow, wantHigh = min(wantLow, x), max(wantHigh, x)
			squared += (x - 0.25) * (x - 0.25)
			if x < 0 {
				wantNegative++
			} else if x == 0 {
				wantZero++
			}
		}
		// The numbers are such that no sum is rounded.
		if sum != wantSum || low != wantLow || high != wantHigh || negative != wantNegative || zero != wantZero || squares(xs, 0.25) != squared {
			t.Errorf("%d numbers: %v %v %v %d %d %v, want %v %v %v %d %d %v", n, sum, low, high, negative, zero, squares(xs, 0.25),
				wantSum, wantLow, wantHigh, wantNegative, wantZero, squared)
		}
		for _, edges := range [][]float64{edgesOf(-2, 2, 7), edgesOf(-1.5, 1, 10), edgesOf(0, 1e9, 3)} {
			quick, plain := newCounter(edges), newCounter(edges)
			quick.add(xs, 2)
			plain.sort(xs, 2)
			quick.fold()
			if !slices.Equal(quick.counts, plain.counts) || quick.below != plain.below || quick.above != plain.above {
				t.Errorf("%d numbers in %v: %v, want %v", n, edges, quick.counts, plain.counts)
			}
		}
	}
}

// TestNumbersNextToEdges counts numbers that lie on edges, and next to them on both sides.
func TestNumbersNextToEdges(t *testing.T) {
	t.Parallel()
	edges := edgesOf(0.1, 0.7, 6) // which rounding moves
	var xs []float64
	for _, e := range edges {
		xs = append(xs, e, math.Nextafter(e, 0), math.Nextafter(e, 1), e+0.01, e-0.01)
	}
	for len(xs)%step != 0 {
		xs = append(xs, 0.35)
	}
	quick, plain := newCounter(edges), newCounter(edges)
	quick.add(xs, 1)
	for _, x := range xs {
		i := 0
		for i < len(edges) && edges[i] <= x {
			i++
		}
		switch {
		case i == 0:
			plain.below++
		case x == edges[len(edges)-1]:
			plain.counts[i-2]++
		case i == len(edges):
			plain.above++
		default:
			plain.counts[i-1]++
		}
	}
	quick.fold()
	if !slices.Equal(quick.counts, plain.counts) || quick.below != plain.below || quick.above != plain.above {
		t.Errorf("%v, %d below, %d above; want %v, %d, %d", quick.counts, quick.below, quick.above, plain.counts, plain.below, plain.above)
	}
}

// TestSinglesAreSummedUpInPlace compares dense float32 of many lengths with the same ones with gaps, which go another way.
func TestSinglesAreSummedUpInPlace(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 15, 16, 17, 4095, 4096, 4097, 70_000, 200_003} {
		for _, bad := range []float32{0, float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
			dense, gaps := make([]float32, n), make([]float32, 2*n)
			for i := range dense {
				dense[i] = float32(math.Floor(100*math.Sin(float64(i)))) / 8
			}
			dense[n/2] = bad
			for i, x := range dense {
				gaps[2*i] = x
			}
			wide, err := coretest.NewView(t, gaps).Step(0, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer wide.Close()
			a, err := Of(t.Context(), coretest.NewView(t, dense), nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Of(t.Context(), wide, nil)
			if err != nil {
				t.Fatal(err)
			}
			counts := func(s *Summary) [8]int {
				return [8]int{s.Len, s.Seen, s.NaN, s.PosInf, s.NegInf, s.Zero, s.Negative, s.Positive}
			}
			near := func(x, y float64) bool {
				return x == y || x != x && y != y || math.Abs(x-y) <= 1e-13*(math.Abs(x)+math.Abs(y))
			}
			if counts(a) != counts(b) || !near(a.Min, b.Min) || !near(a.Max, b.Max) || math.Abs(a.Mean-b.Mean) > 1e-13*a.Std ||
				!near(a.Std, b.Std) || !near(a.Norm, b.Norm) {
				t.Errorf("%d with %v: dense\n%+v, with gaps\n%+v", n, bad, *a, *b)
			}
		}
	}
}

// FuzzSingles compares dense float32 of any bits, counted by pairs and summed up in one pass, with the loops for all processors.
func FuzzSingles(f *testing.F) {
	if !fast() {
		f.Log("this processor has no AVX2")
	}
	f.Add(make([]byte, 64), 0.0, 1.0, uint8(64))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), -1e-3, 0.7, uint8(7))
	f.Add(slices.Repeat([]byte{0, 0, 0x80, 0x3f, 0xff, 0xff, 0x7f, 0x3f, 1, 0, 0x80, 0x3f}, 300), 0.1, 1.0, uint8(9)) // 1 and next to it
	f.Add(slices.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0x80, 0xff, 0xff, 0x7f, 0x7f}, 600), 0.0, 3e38, uint8(64))
	f.Add(slices.Repeat([]byte{0, 0x24, 0x74, 0x49}, 100), -5e5, 5e5, uint8(10)) // far from zero
	f.Fuzz(func(t *testing.T, raw []byte, low, high float64, bins uint8) {
		o := Options{Bins: int(bins), Low: low, High: high}
		if bins == 0 || !(low < high) || o.check(coretest.NewView(t, []float32{})) != nil {
			return
		}
		n := len(raw) / 4 / step * step
		raw = raw[:4*n]
		xs := make([]float64, n)
		for i := range xs {
			x := float64(math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:])))
			if x-x != 0 {
				x = 1
				binary.NativeEndian.PutUint32(raw[4*i:], math.Float32bits(1))
			}
			xs[i] = x
		}
		quick, plain := newCounter(edgesOf(low, high, int(bins))), newCounter(edgesOf(low, high, int(bins)))
		var one moments
		quick.pairs = newPairCounter(quick, new(pairCounter))
		if n == 0 || quick.pairs == nil || !one.single(raw, xs[n/2]) {
			return
		}
		quick.single(raw)
		plain.sort(xs, 1)
		quick.fold()
		if !slices.Equal(quick.counts, plain.counts) || quick.below != plain.below || quick.above != plain.above {
			t.Errorf("%v in %v:\n%v, %d below, %d above; want\n%v, %d, %d", xs, quick.edges, quick.counts, quick.below, quick.above,
				plain.counts, plain.below, plain.above)
		}
		var two moments
		for part := range slices.Chunk(xs, blockLen) {
			b, _ := block(part)
			two.merge(&b)
		}
		rough := 1e-13 * max(-two.low, two.high)
		if math.Abs(one.mean-two.mean) > rough || math.Abs(one.std-two.std) > 1e-13*two.std+1e-3*rough {
			t.Errorf("%+v, want %+v", one, two)
		}
		one.mean, one.std = two.mean, two.std
		if one != two {
			t.Errorf("%+v, want %+v", one, two)
		}
	})
}

// TestPairsAreCountedWithoutEnd lets the words of the pairs be full.
func TestPairsAreCountedWithoutEnd(t *testing.T) {
	t.Parallel()
	c := newCounter(edgesOf(0, 1, 2))
	if c.pairs = newPairCounter(c, new(pairCounter)); c.pairs == nil {
		return // these loops are for another processor
	}
	raw := make([]byte, 4*pairLen)
	c.single(raw)
	c.pairs.counts[0], c.pairs.counted = math.MaxUint32-pairLen/2+1, math.MaxUint32 // as if there had been as many before
	c.single(raw)
	c.fold()
	if want := 2*(math.MaxUint32+1) - pairLen + pairLen; c.counts[0] != want {
		t.Errorf("%d zeros, want %d", c.counts[0], want)
	}
}

// TestCountsWhatBecameNaN counts numbers that the program made NaN after they were found to be finite.
func TestCountsWhatBecameNaN(t *testing.T) {
	t.Parallel()
	c := newCounter([]float64{0, 1, 2})
	if c.pairs = newPairCounter(c, new(pairCounter)); c.pairs == nil {
		t.Skip("this processor has no AVX2")
	}
	raw := make([]byte, 4*step)
	binary.NativeEndian.PutUint32(raw, math.Float32bits(float32(math.NaN())))
	c.single(raw)
	if c.fold(); c.counts[0] != step-1 || c.counts[1] != 0 {
		t.Errorf("%v", c.counts)
	}
}
