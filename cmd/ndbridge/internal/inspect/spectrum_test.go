package inspect

import (
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestSpectrum finds the wave that a line is made of, and its amplitude, whatever else the array has.
func TestSpectrum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n       int
		periods float64
	}{{4096, 0.125}, {4096, 0.3333}, {1000, 0.1}, {3 * longest, 0.25}} {
		data := make([]float64, 2*c.n)
		for i := range c.n {
			data[c.n+i] = 100 + 3*math.Sin(2*math.Pi*c.periods*float64(i))
		}
		data[c.n+c.n/2] = math.NaN()
		s, err := spectrumOf(t.Context(), coretest.NewView(t, data, 2, c.n), 1, []int{1, 0}, stats.CellOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := min(c.n, longest); s.Of != want || len(s.Amplitude) > lineCells || len(s.Periods) != len(s.Amplitude) {
			t.Errorf("%+v: of %d elements, %d points at %d", c, s.Of, len(s.Amplitude), len(s.Periods))
		}
		at := 0
		for i, x := range s.Amplitude {
			if x > s.Amplitude[at] {
				at = i
			}
		}
		if got := float64(s.Periods[at]); math.Abs(got-c.periods) > 1/float64(s.Of) { // not only where its point begins
			t.Errorf("%+v: the greatest wave is at %v", c, got)
		}
		if got := float64(s.Amplitude[at]); got < 2 || got > 4 {
			t.Errorf("%+v: its amplitude is %v, want 3", c, got)
		}
	}
}

// TestSpectrumPlace says where the greatest wave of a point is, and not where the point begins.
func TestSpectrumPlace(t *testing.T) {
	t.Parallel()
	for _, periods := range []int{100, 101, 2049, 4093} {
		data := make([]float64, longest)
		for i := range data {
			data[i] = 2 + 3*math.Sin(2*math.Pi*float64(i*periods%longest)/longest)
		}
		s, err := spectrumOf(t.Context(), coretest.NewView(t, data), 0, []int{0}, stats.CellOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(s.Amplitude, slices.Max(s.Amplitude))
		if got, want := float64(s.Periods[at]), float64(periods)/longest; got != want {
			t.Errorf("%v periods an element, want %v", got, want)
		}
	}
}

// TestSpectrumHighest gives the wave of two elements, which has no mirror image, its own amplitude and not twice as much.
func TestSpectrumHighest(t *testing.T) {
	t.Parallel()
	data := make([]float64, 4096)
	for i := range data {
		data[i] = 3 - 6*float64(i%2)
	}
	s, err := spectrumOf(t.Context(), coretest.NewView(t, data), 0, []int{0}, stats.CellOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := float64(s.Amplitude[len(s.Amplitude)-1]); math.Abs(got-3) > 0.01 {
		t.Errorf("the amplitude of the highest frequency is %v, want 3", got)
	}
}

// TestSpectrumOfNothing has no waves in what does not change, or is no number.
func TestSpectrumOfNothing(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, data := range [][]float64{{5}, {5, 5}, {5, 5, 5}, {nan, nan, nan}, {nan}, {math.Inf(1), 2}} {
		s, err := spectrumOf(t.Context(), coretest.NewView(t, data), 0, []int{0}, stats.CellOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range s.Amplitude {
			if x != 0 {
				t.Errorf("%v: the wave at %v has amplitude %v", data, s.Periods[i], x)
			}
		}
	}
}

// TestExactLine finds the one great element of a long line where all elements are asked for.
func TestExactLine(t *testing.T) {
	t.Parallel()
	data := make([]float64, 8*leastSample)
	data[len(data)/2+1] = 7
	l := look{Exact: true}
	c, err := stats.Line(t.Context(), coretest.NewView(t, data), 0, []int{0}, lineCells, &stats.CellOptions{PerCell: l.perPoint(), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Exact() || slices.Max(c.Max) != 7 {
		t.Errorf("%d of %d elements were looked at, the greatest is %v", c.Seen, len(data), slices.Max(c.Max))
	}
}
