package inspect

import (
	"context"
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
)

// longest is how many elements along an axis a spectrum is made of: the first.
const longest = 1 << 13

// spectrum says of what waves a line along an axis is the sum.
type spectrum struct {
	Of        int            `json:"of"`        // elements
	Periods   []stats.Number `json:"periods"`   // waves per element, from 0 to a half
	Amplitude []stats.Number `json:"amplitude"` // of such a wave, the greatest of all near it
}

// spectrumOf makes the spectrum of the elements along an axis, without their mean. Those that are not finite count as the mean.
func spectrumOf(ctx context.Context, v *core.View, axis int, at []int, o stats.CellOptions) (*spectrum, error) {
	if n := v.Dim(axis); n > longest {
		part, err := v.Sub(axis, 0, longest)
		if err != nil {
			return nil, err
		}
		defer part.Close() //nolint:errcheck // derived
		v = part
		if o.Base != nil {
			if o.Base, err = o.Base.Sub(axis, 0, longest); err != nil {
				return nil, err
			}
			defer o.Base.Close() //nolint:errcheck // derived
		}
	}
	line, err := stats.Line(ctx, v, axis, at, longest, &o) // each cell is an element
	if err != nil {
		return nil, err
	}
	waves := amplitudes(line.Mean)
	s := &spectrum{Of: len(line.Mean)}
	cells := min(len(waves), lineCells)
	for i := range cells {
		from, to := i*len(waves)/cells, (i+1)*len(waves)/cells
		at := from // of the greatest
		for j := from; j < to; j++ {
			if waves[j] > waves[at] {
				at = j
			}
		}
		s.Periods = append(s.Periods, stats.Number(float64(at)/float64(2*max(len(waves)-1, 1))))
		s.Amplitude = append(s.Amplitude, stats.Number(waves[at]))
	}
	return s, nil
}

// amplitudes gives those of the waves of 0 to n/2 periods in n elements, where n is a power of two. A window (Hann's) keeps a wave that does not fit from
// being seen as many others.
func amplitudes(xs []float64) []float64 {
	mean, finite := 0.0, 0
	for _, x := range xs {
		if x-x == 0 {
			finite++
			mean += (x - mean) / float64(finite)
		}
	}
	n := 1 << bits.Len(uint(max(len(xs)-1, 1)))
	waves, weights := make([]complex128, n), 0.0
	for i, x := range xs {
		window := 0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(len(xs)))
		weights += window
		if x-x == 0 {
			waves[i] = complex(window*(x-mean), 0)
		}
	}
	transform(waves)
	out := make([]float64, n/2+1)
	for i := range out {
		out[i] = 2 * cmplx.Abs(waves[i]) / weights
	}
	// Every other wave has a mirror image above n/2, which holds half of its amplitude.
	out[0] /= 2
	out[n/2] /= 2
	return out
}

// transform is Fourier's, of a power of two numbers, in place.
func transform(xs []complex128) {
	n := len(xs)
	shift := bits.UintSize - bits.Len(uint(n-1))
	for i := range xs {
		if j := int(bits.Reverse(uint(i)) >> shift); i < j && n > 1 { //nolint:gosec // both are below n
			xs[i], xs[j] = xs[j], xs[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		turn := cmplx.Rect(1, -2*math.Pi/float64(size))
		for from := 0; from < n; from += size {
			w := complex(1, 0)
			for i := from; i < from+size/2; i++ {
				a, b := xs[i], w*xs[i+size/2]
				xs[i], xs[i+size/2] = a+b, a-b
				w *= turn
			}
		}
	}
}
