package stats_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

func of(tb testing.TB, v *core.View, opts *stats.Options) *stats.Summary {
	tb.Helper()
	s, err := stats.Of(tb.Context(), v, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// bytesView is a view of bytes, described in any way.
func bytesView(tb testing.TB, data []byte, spec core.LayoutSpec, opts *core.ViewOptions) *core.View {
	tb.Helper()
	l, err := core.NewLayout(spec)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(data), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := v.Close(); err != nil {
			tb.Error(err)
		}
	})
	return v
}

func TestFigures(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	int4 := bytesView(t, []byte{0x8f, 0x07}, core.LayoutSpec{DType: core.Int4, Shape: []int{3}}, nil) // -1, -8, 7
	broadcast := bytesView(t, []byte{3, 5}, core.LayoutSpec{DType: core.Uint8, Shape: []int{1 << 30, 2}, Strides: []int{0, 1}}, nil)
	misaligned := bytesView(t, []byte{0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, core.LayoutSpec{DType: core.Float32, Shape: []int{2}, Offset: 1}, nil)
	cases := map[string]struct {
		view                         *core.View
		nan, inf, zero, neg, pos     int
		low, high, mean, square, std float64
	}{
		"floats":     {coretest.NewView(t, []float64{1, nan, -3, inf, -inf, 5, math.Copysign(0, -1)}), 1, 2, 1, 1, 2, -3, 5, 0.75, 35, math.Sqrt(35/4.0 - 0.75*0.75)},
		"no number":  {coretest.NewView(t, []float32{float32(nan), float32(inf)}), 1, 1, 0, 0, 0, nan, nan, nan, 0, nan},
		"bools":      {coretest.NewView(t, []bool{true, false, true, true}), 0, 0, 1, 0, 3, 0, 1, 0.75, 3, math.Sqrt(3) / 4},
		"complex":    {coretest.NewView(t, []complex128{3 + 4i, 0}), 0, 0, 1, 0, 1, 0, 5, 2.5, 25, 2.5},
		"empty":      {coretest.NewView(t, []float64{}, 0, 4), 0, 0, 0, 0, 0, nan, nan, nan, 0, nan},
		"packed":     {int4, 0, 0, 0, 2, 1, -8, 7, -2.0 / 3, 114, math.Sqrt(38 - 4.0/9)},
		"broadcast":  {broadcast, 0, 0, 0, 0, 1 << 31, 3, 5, 4, 17 << 31, 1},
		"misaligned": {misaligned, 0, 0, 0, 1, 1, -2, 1, -0.5, 5, 1.5},
	}
	for name, c := range cases {
		s := of(t, c.view, nil)
		have := []any{s.NaN, s.PosInf + s.NegInf, s.Zero, s.Negative, s.Positive, s.Min, s.Max, s.Seen, s.Exact()}
		want := []any{c.nan, c.inf, c.zero, c.neg, c.pos, c.low, c.high, c.view.Len(), true}
		if fmt.Sprint(have) != fmt.Sprint(want) { // NaN is not equal to itself
			t.Errorf("%s: %v, want %v", name, have, want)
		}
		for i, pair := range [][2]float64{{s.Mean, c.mean}, {s.Std, c.std}, {s.Norm, math.Sqrt(c.square)}} {
			if !(math.Abs(pair[0]-pair[1]) <= 1e-14*math.Abs(pair[1])) && !(math.IsNaN(pair[0]) && math.IsNaN(pair[1])) {
				t.Errorf("%s: figure %d is %v, want %v", name, i, pair[0], pair[1])
			}
		}
	}
}

// TestWorkersDoNotMatter compares the figures of one worker with those of many, bit by bit.
func TestWorkersDoNotMatter(t *testing.T) {
	t.Parallel()
	data := make([]float32, 1_000_003)
	for i := range data {
		data[i] = float32(math.Sin(float64(i)) * float64(i%77))
	}
	v := coretest.NewView(t, data)
	for _, sample := range []int{0, 50_000} {
		one := of(t, v, &stats.Options{Workers: 1, Bins: 20, Sample: sample})
		many := of(t, v, &stats.Options{Workers: 7, Bins: 20, Sample: sample})
		one.Taken, many.Taken = 0, 0
		if fmt.Sprint(*one) != fmt.Sprint(*many) {
			t.Errorf("sample %d: one worker says\n%+v, seven\n%+v", sample, *one, *many)
		}
	}
}

// TestSmallBesideLarge counts small numbers that stand beside such as must be scaled to be summed up.
func TestSmallBesideLarge(t *testing.T) {
	t.Parallel()
	data := []float64{1e300, 1e-300, 0.25, -1e200}
	s := of(t, coretest.NewView(t, data), &stats.Options{Bins: 2, High: 1})
	if want := []int{2, 0}; !slices.Equal(s.Histogram.Counts, want) || s.Histogram.Below != 1 || s.Histogram.Above != 1 {
		t.Errorf("%+v, want %v, one below and one above", s.Histogram, want)
	}
	for _, x := range []float64{1e-300, 0.25, 1e300} {
		s := of(t, coretest.NewView(t, data), &stats.Options{Bins: stats.Auto, Log: true})
		i, exact := slices.BinarySearch(s.Histogram.Edges, x)
		if !exact {
			i--
		}
		if s.Histogram.Counts[i] != 1 {
			t.Errorf("%d of %v, want 1", s.Histogram.Counts[i], x)
		}
	}
}

// TestSampleOfAllIsExact: what repeats a few elements is read as a whole, however small the sample that was asked for.
func TestSampleOfAllIsExact(t *testing.T) {
	t.Parallel()
	v := bytesView(t, []byte{3, 5}, core.LayoutSpec{DType: core.Uint8, Shape: []int{1 << 40, 2}, Strides: []int{0, 1}}, nil)
	if s := of(t, v, &stats.Options{Sample: 1 << 16}); !s.Exact() || s.Seen != v.Len() || s.Sweep != 1 || s.Mean != 4 {
		t.Errorf("%+v", *s)
	}
}

// TestSweep finds the one NaN of an array by successive looks at samples, and each element exactly once.
func TestSweep(t *testing.T) {
	t.Parallel()
	data := make([]float64, 16*7*1000)
	data[77_777] = math.NaN()
	v := coretest.NewView(t, data)
	for _, c := range []struct{ run, sample, runs, sweep int }{{0, 16_000, 1000, 7}, {16, 1600, 100, 70}, {1000, 16_000, 16, 7}, {4000, 16_000, 4, 7}, {1, 100, 100, 1120}, {1 << 20, 7000, 1, 16}} {
		found := 0
		for look := range c.sweep {
			s := of(t, v, &stats.Options{Sample: c.sample, Run: c.run, Seed: 5 + uint64(look), Workers: 1 + look%2})
			if s.Seen != c.sample || s.Runs != c.runs || s.Exact() || s.Sweep != c.sweep {
				t.Fatalf("%+v, expected %+v", *s, c)
			}
			found += s.NaN
		}
		if found != 1 {
			t.Errorf("%+v: it was found %d times", c, found)
		}
	}
}

// TestSampleErrors holds samples of random numbers against the bounds that they state.
func TestSampleErrors(t *testing.T) {
	t.Parallel()
	data := make([]float32, 1<<20)
	for i := range data {
		data[i] = float32(math.Floor(float64(i)/16)) / 1000 // neighbours are equal: the worst case
	}
	v := coretest.NewView(t, data)
	exact := of(t, v, nil)
	beyond := 0
	const looks = 200
	for seed := range uint64(looks) {
		s := of(t, v, &stats.Options{Sample: 16_384, Seed: seed * 977})
		if math.Abs(s.Mean-exact.Mean) > 2*s.MeanError() {
			beyond++
		}
		if math.Abs(s.Norm-exact.Norm) > 0.1*exact.Norm {
			t.Errorf("norm %v of %v", s.Norm, exact.Norm)
		}
	}
	if beyond > looks/10 {
		t.Errorf("%d means of %d are farther away than twice the error", beyond, looks)
	}
	s := of(t, v, &stats.Options{Sample: 16_384})
	if p := s.Missed(1 << 10); math.Abs(p-math.Exp(-1)) > 0.01 || exact.Missed(1) != 0 || exact.MeanError() != 0 {
		t.Errorf("missed %v", p)
	}
}

// TestRangeStays: a histogram of all elements has the same range at each look at the same ones, though one of them is far from all others.
func TestRangeStays(t *testing.T) {
	t.Parallel()
	data := make([]float64, 100_000)
	data[0] = 1e9
	v := coretest.NewView(t, data)
	first := of(t, v, &stats.Options{Bins: stats.Auto}).Histogram
	for seed := range uint64(20) {
		if h := of(t, v, &stats.Options{Bins: stats.Auto, Seed: seed}).Histogram; !slices.Equal(h.Edges, first.Edges) {
			t.Fatalf("from %v to %v, and then from %v to %v", first.Edges[0], first.Edges[len(first.Edges)-1], h.Edges[0], h.Edges[len(h.Edges)-1])
		}
	}
}

// TestExtremesAreInside counts all elements in a histogram of numbers that are far beyond those of which equal bins can be made.
func TestExtremesAreInside(t *testing.T) {
	t.Parallel()
	for _, data := range [][]float64{{1e-320, 5e-324, 0, 1e308, -1e308}, {1e308}, {-1e308, -1.5e308}, {0, math.MaxFloat64}} {
		all := slices.Repeat(data, 3000)
		h := of(t, coretest.NewView(t, all), &stats.Options{Bins: stats.Auto}).Histogram
		inside := 0
		for _, n := range h.Counts {
			inside += n
		}
		if inside != len(all) || h.Below != 0 || h.Above != 0 || h.Seen != len(all) {
			t.Errorf("%v: %d inside, %d below, %d above, of %d", data, inside, h.Below, h.Above, h.Seen)
		}
		if !slices.IsSorted(h.Edges) || h.Edges[0] > slices.Min(data) || h.Edges[len(h.Edges)-1] < slices.Max(data) {
			t.Errorf("%v: edges %v", data, h.Edges)
		}
	}
	asked := of(t, coretest.NewView(t, []float64{0, -1e308}), &stats.Options{Bins: 2, Low: -8e307, High: 0}).Histogram
	if asked.Below != 1 || asked.Counts[0] != 0 {
		t.Errorf("of a given range: %+v", asked)
	}
}

// TestWholeNumbersHaveFewBins keeps no bins between zero and the smallest number on either side.
func TestWholeNumbersHaveFewBins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data, edges []float64
		counts      []int
	}{
		{[]float64{-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5}, []float64{-8, -4, -2, -1, 1, 2, 4, 8}, []int{2, 2, 1, 1, 1, 2, 2}},
		{[]float64{0, 0, 3}, []float64{-0x1p-1022, 2, 4}, []int{2, 1}},
		{[]float64{-0.5, 3}, []float64{-1, -0.5, 2, 4}, []int{1, 0, 1}},
		{[]float64{3}, []float64{2, 4}, []int{1}},
	} {
		h := of(t, coretest.NewView(t, c.data), &stats.Options{Bins: stats.Auto, Log: true}).Histogram
		if !slices.Equal(h.Edges, c.edges) || !slices.Equal(h.Counts, c.counts) {
			t.Errorf("%v: edges %v, counts %v", c.data, h.Edges, h.Counts)
		}
	}
}

func TestHistograms(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float64{-3, -2, -0.5, 0, 1, 1.5, 2, math.NaN(), 100})
	h := of(t, v, &stats.Options{Bins: 4, Low: -2, High: 2}).Histogram
	if !slices.Equal(h.Counts, []int{1, 1, 1, 3}) || h.Below != 1 || h.Above != 1 || !slices.Equal(h.Edges, []float64{-2, -1, 0, 1, 2}) {
		t.Errorf("fixed: %+v", h)
	}
	h = of(t, v, &stats.Options{Bins: stats.Auto, Log: true}).Histogram
	for i, n := range h.Counts {
		if want := map[float64]int{-4: 2, -1: 1, -0.5: 1, 1: 2, 2: 1, 64: 1}[h.Edges[i]]; n != want {
			t.Errorf("log: %d from %v to %v, want %d", n, h.Edges[i], h.Edges[i+1], want)
		}
	}
	if len(h.Counts) != 3+1+7 {
		t.Errorf("log: bins between %v", h.Edges)
	}
	h = of(t, coretest.NewView(t, []float32{7, 7}), &stats.Options{Bins: 2}).Histogram
	if !slices.Equal(h.Edges, []float64{6.5, 7, 7.5}) || !slices.Equal(h.Counts, []int{0, 2}) {
		t.Errorf("of one value: %+v", h)
	}
	if h = of(t, coretest.NewView(t, []float32{float32(math.NaN())}), &stats.Options{Bins: 2}).Histogram; h.Edges != nil {
		t.Errorf("of no number: %+v", h)
	}
	extremes := coretest.NewView(t, []float64{math.MaxFloat64, -math.MaxFloat64, 0})
	if h = of(t, extremes, &stats.Options{Bins: 3}).Histogram; h.Below != 0 || h.Above != 0 || !slices.Equal(h.Counts, []int{1, 1, 1}) || h.Edges[0] != -math.MaxFloat64 || h.Edges[3] != math.MaxFloat64 {
		t.Errorf("of the whole range: %+v", h)
	}
}

func TestDifferenceToAnEarlierVersion(t *testing.T) {
	t.Parallel()
	data := []float32{1, 2, 3, 4, 5, 6}
	v := coretest.NewView(t, data, 2, 3)
	before, err := stats.Keep(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	data[4] = 9
	s := of(t, v, &stats.Options{Base: before})
	if s.Zero != 5 || s.Positive != 1 || s.Max != 4 || s.Norm != 4 {
		t.Errorf("%+v", *s)
	}
	transposed, err := v.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer transposed.Close()
	kept, err := before.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	c, err := stats.Image(t.Context(), transposed, stats.Plane{Y: 0, X: 1}, 2, 3, &stats.CellOptions{Base: kept})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Mean, []float64{0, 0, 0, 4, 0, 0}) {
		t.Errorf("%v", c.Mean)
	}
	if _, err := stats.Of(t.Context(), v, &stats.Options{Base: transposed}); !errors.Is(err, core.ErrLayout) {
		t.Errorf("a base of another shape: %v", err)
	}
}

func TestTorn(t *testing.T) {
	t.Parallel()
	spec := core.LayoutSpec{DType: core.Uint8, Shape: []int{4}}
	for want, opts := range map[bool]*core.ViewOptions{true: nil, false: {Version: 3}} {
		if s := of(t, bytesView(t, make([]byte, 4), spec, opts), nil); s.Torn != want {
			t.Errorf("torn: %v, want %v", s.Torn, want)
		}
	}
	if s := of(t, bytesView(t, make([]byte, 4), spec, &core.ViewOptions{Reason: "small"}), nil); s.Torn {
		t.Error("a copy is torn")
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float64{1, 2})
	opaque, err := core.Opaque(2)
	if err != nil {
		t.Fatal(err)
	}
	closed := coretest.NewView(t, []float64{1})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		view *core.View
		opts stats.Options
		want error
	}{
		"opaque":   {bytesView(t, make([]byte, 2), core.LayoutSpec{DType: opaque}, nil), stats.Options{}, core.ErrDType},
		"closed":   {closed, stats.Options{}, core.ErrClosed},
		"sample":   {v, stats.Options{Sample: -1}, core.ErrConfig},
		"bins":     {v, stats.Options{Bins: -2}, core.ErrConfig},
		"range":    {v, stats.Options{Low: 2, High: 1}, core.ErrConfig},
		"infinite": {v, stats.Options{High: math.Inf(1)}, core.ErrConfig},
		"workers":  {v, stats.Options{Workers: -1}, core.ErrConfig},
	} {
		if _, err := stats.Of(t.Context(), c.view, &c.opts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	_, err = stats.Of(t.Context(), bytesView(t, make([]byte, 2), core.LayoutSpec{DType: opaque}, nil), nil)
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Remedy != "look at an array of numbers that the program makes of it, such as one of float64" {
		t.Errorf("opaque: %v", err) // what users can do who have no Go comes first
	}
	if _, err := stats.Of(ended, v, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	for name, p := range map[string]stats.Plane{
		"axis": {Y: 0, X: 1}, "twice": {Y: 0, X: 0}, "indices": {Y: stats.None, X: 0, At: []int{0, 0}}, "outside": {Y: stats.None, X: stats.None, At: []int{2}},
	} {
		if _, err := stats.Image(t.Context(), v, p, 2, 2, nil); !errors.Is(err, core.ErrLayout) {
			t.Errorf("plane with a wrong %s: %v", name, err)
		}
	}
	if _, err := stats.Line(t.Context(), v, 0, nil, 0, nil); !errors.Is(err, core.ErrConfig) {
		t.Errorf("no cells: %v", err)
	}
}

// TestNormOfASample is exact where all elements are the same.
func TestNormOfASample(t *testing.T) {
	t.Parallel()
	ones := make([]float32, 1<<20)
	for i := range ones {
		ones[i] = 1
	}
	v := coretest.NewView(t, ones)
	for sample := 4096; sample < 1<<20; sample += 4096 {
		s, err := stats.Of(t.Context(), v, &stats.Options{Sample: sample})
		if err != nil {
			t.Fatal(err)
		}
		if s.Norm != 1024 {
			t.Errorf("%d of %d ones have norm %v", s.Seen, s.Len, s.Norm)
		}
	}
}
