package render

import (
	"context"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
	"github.com/ndbridge/ndbridge/internal/pieces"
)

// maxSamples is how many elements of an array are looked at for a curve or for statistics.
const maxSamples = 1 << 26

// series is an array of one axis, drawn in as many columns as there is room for: each stands for some
// neighbouring elements.
type series struct {
	n         int       // elements of the array
	low, high []float64 // of each column, the least and greatest finite number; NaN if there is none
	mean      []float64
}

// curveOf divides v among at most columns columns.
func curveOf(ctx context.Context, v *core.View, columns int) (*series, error) {
	n := v.Len()
	columns = min(columns, n)
	s := &series{n, make([]float64, columns), make([]float64, columns), make([]float64, columns)}
	read, err := thinned(v, maxSamples)
	if err != nil {
		return nil, err
	}
	defer read.Close() //nolint:errcheck // derived, so there is nothing to give back
	count := make([]int, columns)
	for i := range columns {
		s.low[i], s.high[i] = math.Inf(1), math.Inf(-1)
	}
	i, total := 0, read.Len()
	err = magnitudes(ctx, read, func(xs []float64) {
		for _, x := range xs {
			c := i * columns / total
			i++
			if x-x == 0 { // finite
				s.low[c], s.high[c] = min(s.low[c], x), max(s.high[c], x)
				s.mean[c] += x
				count[c]++
			}
		}
	})
	for i := range columns {
		s.mean[i] /= float64(count[i]) // NaN where nothing is finite
		if count[i] == 0 {
			s.low[i], s.high[i] = math.NaN(), math.NaN()
		}
	}
	return s, err
}

// bounds gives the least and greatest number of all columns, or ok = false if there is none.
func (s *series) bounds() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range s.low {
		if !math.IsNaN(s.low[i]) {
			lo, hi = min(lo, s.low[i]), max(hi, s.high[i])
		}
	}
	return lo, hi, lo <= hi
}

// thinned is a view of all elements of v, or of every k-th along its longest axis if there are more than
// limit.
func thinned(v *core.View, limit int) (*core.View, error) {
	k := (v.Len() + limit - 1) / limit
	if k <= 1 || v.DType().Packed() {
		return same(v)
	}
	longest := 0
	for axis := range v.Rank() {
		if v.Dim(axis) > v.Dim(longest) {
			longest = axis
		}
	}
	return v.Step(longest, min(k, v.Dim(longest)))
}

// magnitudes calls f with the values of the elements of v, in order and piece by piece.
func magnitudes(ctx context.Context, v *core.View, f func([]float64)) error {
	d, left := numbers.TypeOf(v.Layout()), v.Len()
	var buf []float64
	for raw, err := range pieces.Of(ctx, v, pieces.Default-pieces.Default%max(d.Bits(), 1)) {
		if err != nil {
			return err
		}
		n := min(len(raw)*8/d.Bits(), left)
		left -= n
		buf = numbers.Append(buf[:0], raw, d, n)
		f(buf)
	}
	return nil
}
