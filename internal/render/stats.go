package render

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// Statistics sums an array of numbers up. Complex numbers count by their magnitude, bools as 0 and 1.
type Statistics struct {
	Elements int     // looked at
	Sampled  bool    // only some were looked at, evenly spread, because there are very many
	NaN, Inf int     // of those looked at
	Min, Max float64 // of the finite ones; NaN if there are none
	Mean     float64 // of the finite ones; NaN if there are none
}

// Measure sums v up. It looks at all elements of arrays of up to 64 Mi elements. An array without
// elements has statistics of nothing; elements without a known value are refused with core.ErrDType.
func Measure(ctx context.Context, v *core.View) (Statistics, error) {
	return measure(ctx, v, maxSamples)
}

func measure(ctx context.Context, v *core.View, limit int) (Statistics, error) {
	s := Statistics{Min: math.NaN(), Max: math.NaN(), Mean: math.NaN()}
	if v.Len() == 0 {
		return s, nil
	}
	if !numbers.Known(v.DType()) {
		return s, undrawable(v)
	}
	w, repeats, err := inMemoryOrder(v)
	if err != nil {
		return s, err
	}
	w, err = next(w, func(w *core.View) (*core.View, error) { return thinned(w, limit) })
	if err != nil {
		return s, err
	}
	defer w.Close() //nolint:errcheck // derived, so there is nothing to give back
	lo, hi, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
	err = magnitudes(ctx, w, func(xs []float64) {
		for _, x := range xs {
			switch {
			case x-x == 0: // finite
				lo, hi = min(lo, x), max(hi, x)
				n++
				sum += (x - sum) / float64(n) // a running mean cannot overflow
			case math.IsNaN(x):
				s.NaN += repeats
			default:
				s.Inf += repeats
			}
		}
	})
	s.Elements = w.Len() * repeats
	s.Sampled = s.Elements < v.Len()
	if n > 0 {
		s.Min, s.Max, s.Mean = lo, hi, sum
	}
	return s, err
}

// inMemoryOrder is a view of the same elements in the order in which they lie in memory, which is the
// fastest to read. Those that repeat others (an axis of stride 0) are read once.
func inMemoryOrder(v *core.View) (w *core.View, repeats int, err error) {
	repeats = 1
	if v.DType().Packed() {
		w, err = same(v)
		return w, repeats, err
	}
	axes := make([]int, v.Rank())
	for i := range axes {
		axes[i] = i
	}
	slices.SortStableFunc(axes, func(a, b int) int {
		return cmp.Compare(abs(v.Stride(b)), abs(v.Stride(a)))
	})
	w, err = v.Transpose(axes...)
	for i, axis := range axes {
		if v.Stride(axis) == 0 && v.Dim(axis) > 1 && err == nil {
			repeats *= v.Dim(axis)
			w, err = next(w, func(w *core.View) (*core.View, error) { return w.Sub(i, 0, 1) })
		}
	}
	return w, repeats, err
}

func abs(x int) int { return max(x, -x) }
