package render

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m) }

// viewOf makes a view of data that is closed with the test.
func viewOf[T core.Element](t *testing.T, data []T, shape ...int) *core.View {
	t.Helper()
	return closing(t, coretest.NewView(t, data, shape...))
}

func closing(t *testing.T, v *core.View) *core.View {
	t.Helper()
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// bytesView makes a view of raw bytes.
func bytesView(t *testing.T, raw []byte, s core.LayoutSpec) *core.View {
	t.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(raw), &core.ViewOptions{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, v)
}

// ramped gives n numbers 0, 1, 2, ...
func ramped[T uint8 | uint16 | int32 | float32 | float64](n int) []T {
	data := make([]T, n)
	for i := range data {
		data[i] = T(i)
	}
	return data
}

func decoded(t *testing.T, v *core.View, opts PNGOptions) image.Image {
	t.Helper()
	var file bytes.Buffer
	if err := PNG(t.Context(), &file, v, opts); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func nrgba(c color.Color) color.NRGBA {
	n, ok := color.NRGBAModel.Convert(c).(color.NRGBA)
	if !ok {
		panic("the model gives its own type")
	}
	return n
}

func TestBytesAreDrawnAsTheyAre(t *testing.T) {
	t.Parallel()
	const h, w = 11, 7
	for _, channels := range []int{1, 3, 4} {
		data := ramped[uint8](h * w * channels)
		shape := []int{h, w, channels}
		if channels == 1 {
			shape = shape[:2]
		}
		img := decoded(t, viewOf(t, data, shape...), PNGOptions{})
		if got := img.Bounds(); got != image.Rect(0, 0, w, h) {
			t.Fatalf("%d channels: bounds %v", channels, got)
		}
		for i := range h * w {
			p := data[i*channels:][:channels]
			want := map[int]color.NRGBA{1: {p[0], p[0], p[0], 255}}[channels]
			switch channels {
			case 3:
				want = color.NRGBA{p[0], p[1], p[2], 255}
			case 4:
				want = color.NRGBA{p[0], p[1], p[2], p[3]}
			}
			if got := nrgba(img.At(i%w, i/w)); got != want {
				t.Fatalf("%d channels: point %d is %v, want %v", channels, i, got, want)
			}
		}
	}
}

func TestStridesAreObeyed(t *testing.T) {
	t.Parallel()
	const h, w = 12, 9
	photo := viewOf(t, ramped[uint8](h*w*3), h, w, 3)
	straight := decoded(t, photo, PNGOptions{})
	cases := map[string]struct {
		derive func() (*core.View, error)
		from   func(x, y int) (int, int)
	}{
		"transposed": {
			func() (*core.View, error) { return photo.Transpose(1, 0, 2) },
			func(x, y int) (int, int) { return y, x },
		},
		"reversed": {
			func() (*core.View, error) { return photo.Step(0, -1) },
			func(x, y int) (int, int) { return x, h - 1 - y },
		},
		"cropped": {
			func() (*core.View, error) { return photo.Sub(0, 4, 10) },
			func(x, y int) (int, int) { return x, y + 4 },
		},
		"thinned": {
			func() (*core.View, error) { return photo.Step(0, 2) },
			func(x, y int) (int, int) { return x, 2 * y },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := c.derive()
			if err != nil {
				t.Fatal(err)
			}
			img := decoded(t, closing(t, v), PNGOptions{})
			if got := img.Bounds(); got != image.Rect(0, 0, v.Dim(1), v.Dim(0)) {
				t.Fatalf("bounds %v of shape %v", got, v.Shape())
			}
			for y := range v.Dim(0) {
				for x := range v.Dim(1) {
					if got, want := img.At(x, y), straight.At(c.from(x, y)); nrgba(got) != nrgba(want) {
						t.Fatalf("(%d, %d) is %v, want %v", x, y, got, want)
					}
				}
			}
		})
	}
}

func TestNumbersSpreadOverTheColourMap(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	img := decoded(t, viewOf(t, []float64{-1, 0, 3, nan, inf, -inf}, 2, 3), PNGOptions{})
	want := []color.NRGBA{
		colourMap(0), colourMap(0.25), colourMap(1),
		{},
		colourMap(1), colourMap(0),
	}
	for i, c := range want {
		if got := nrgba(img.At(i%3, i/3)); got != c {
			t.Errorf("number %d is %v, want %v", i, got, c)
		}
	}
	if first, last := colourMap(0), colourMap(1); first != (color.NRGBA{68, 1, 84, 255}) ||
		last != (color.NRGBA{253, 231, 37, 255}) {
		t.Errorf("the map goes from %v to %v", first, last)
	}
}

func TestBrightnessOfTheColourMapRises(t *testing.T) {
	t.Parallel()
	before := -1.0
	for i := range 101 {
		now := luma(colourMap(float64(i) / 100))
		if now <= before {
			t.Fatalf("at %d %%: %v after %v", i, now, before)
		}
		before = now
	}
}

func TestHugeRangesDoNotOverflow(t *testing.T) {
	t.Parallel()
	img := decoded(t, viewOf(t, []float64{-math.MaxFloat64, 0, math.MaxFloat64, 0}, 2, 2), PNGOptions{})
	for i, want := range []color.NRGBA{colourMap(0), colourMap(0.5), colourMap(1), colourMap(0.5)} {
		if got := nrgba(img.At(i%2, i/2)); got != want {
			t.Errorf("number %d is %v, want %v", i, got, want)
		}
	}
}

func TestFractionsAreColoursOnlyInsideTheirRange(t *testing.T) {
	t.Parallel()
	data := make([]float32, 5*5*3)
	data[0], data[1], data[2] = 1, 0.5, 0
	img := decoded(t, viewOf(t, data, 5, 5, 3), PNGOptions{})
	if got, want := nrgba(img.At(0, 0)), (color.NRGBA{255, 128, 0, 255}); got != want {
		t.Errorf("inside: %v, want %v", got, want)
	}
	data[5] = 1.5
	img = decoded(t, viewOf(t, data, 5, 5, 3), PNGOptions{})
	if got, want := nrgba(img.At(0, 0)), colourMap(1); got != want {
		t.Errorf("outside: %v, want the first channel %v", got, want)
	}
}

func TestLargeArraysAreAveraged(t *testing.T) {
	t.Parallel()
	data := make([]float64, 300*200)
	for i := range data {
		x, y := i%200, i/200
		data[i] = float64(x/100 + 2*(y/150)) // four fields: 0, 1, 2, 3
		if x%2 == 0 {
			data[i] += 0.5
		}
	}
	v := viewOf(t, data, 300, 200)
	img := decoded(t, v, PNGOptions{Size: 3})
	if got := img.Bounds(); got != image.Rect(0, 0, 2, 3) {
		t.Fatalf("bounds %v", got)
	}
	g := mustSample(t, v, 2, 2)
	for i, want := range []float64{0.25, 1.25, 2.25, 3.25} {
		if math.Abs(g.pix[i]-want) > 0.26 { // only some elements are looked at
			t.Errorf("field %d: %v, want about %v", i, g.pix[i], want)
		}
	}
	if got := decoded(t, v, PNGOptions{Size: -1}).Bounds(); got != image.Rect(0, 0, 200, 300) {
		t.Errorf("every element: bounds %v", got)
	}
}

func mustSample(t *testing.T, v *core.View, w, h int) *grid {
	t.Helper()
	p, err := choose(v)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g, err := sample(t.Context(), p, w, h)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAveragesOfSmallFactorsAreExact(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	g := mustSample(t, viewOf(t, []float64{
		1, 3, nan, 7,
		5, 7, 9, nan,
		nan, nan, math.Inf(1), 1,
		nan, nan, 2, 3,
	}, 4, 4), 2, 2)
	want := []float64{4, 8, nan, 2}
	for i, x := range want {
		if g.pix[i] != x && !(math.IsNaN(x) && math.IsNaN(g.pix[i])) {
			t.Errorf("average %d is %v, want %v", i, g.pix[i], x)
		}
	}
}

func TestPartOfAnArrayOfMoreAxes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		spec  core.LayoutSpec
		form  form
		shape []int
		index string
	}{
		{core.LayoutSpec{DType: core.Float32}, scalar, []int{}, ""},
		{core.LayoutSpec{DType: core.Float32, Shape: []int{1, 1}}, scalar, []int{}, ""},
		{core.LayoutSpec{DType: core.Float32, Shape: []int{9}}, curve, []int{9}, ""},
		{core.LayoutSpec{DType: core.Float32, Shape: []int{1, 9, 1}}, curve, []int{9}, ""},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{9, 3}}, plane, []int{9, 3}, ""},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{9, 9, 3}}, colour, []int{9, 9, 3}, ""},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 9, 9, 4}}, colour, []int{9, 9, 4}, "[0, :, :, :]"},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{1, 9, 1, 8}}, plane, []int{9, 8}, ""},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{3, 9, 8}}, plane, []int{9, 8}, "[0, :, :]"},
		{core.LayoutSpec{DType: core.Int32, Shape: []int{9, 8, 3}}, plane, []int{8, 3}, "[0, :, :]"},
		{core.LayoutSpec{DType: core.Complex64, Shape: []int{9, 8, 3}}, plane, []int{8, 3}, "[0, :, :]"},
		{core.LayoutSpec{DType: core.Int4, Shape: []int{3, 8, 8}}, plane, []int{8, 8}, "[0, :, :]"},
	}
	for _, c := range cases {
		v := bytesView(t, make([]byte, 4096), c.spec)
		p, err := choose(v)
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		if p.form != c.form || p.index != c.index || !equal(p.Shape(), c.shape) {
			t.Errorf("%v: form %d, shape %v, index %q; want %d, %v, %q",
				v.Layout(), p.form, p.Shape(), p.index, c.form, c.shape, c.index)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	opaque, err := core.Opaque(8)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		spec core.LayoutSpec
		opts PNGOptions
		want error
	}{
		"empty":    {core.LayoutSpec{DType: core.Uint8, Shape: []int{0, 3}}, PNGOptions{}, core.ErrLayout},
		"opaque":   {core.LayoutSpec{DType: opaque, Tag: "datetime64[s]", Shape: []int{4}}, PNGOptions{}, core.ErrDType},
		"too many": {core.LayoutSpec{DType: core.Uint8, Shape: []int{1 << 20, 65}, Strides: []int{0, 0}}, PNGOptions{Size: -1}, core.ErrLayout},
	}
	for name, c := range cases {
		v := bytesView(t, make([]byte, 64), c.spec)
		var out bytes.Buffer
		if err := PNG(t.Context(), &out, v, c.opts); !errors.Is(err, c.want) || out.Len() > 0 {
			t.Errorf("%s: got %v and %d bytes, want %v", name, err, out.Len(), c.want)
		}
	}
	closed := coretest.NewView(t, ramped[uint8](64), 8, 8)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := PNG(t.Context(), &bytes.Buffer{}, closed, PNGOptions{}); !errors.Is(err, core.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

var errFull = errors.New("no space left")

type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfTheFileAreKept(t *testing.T) {
	t.Parallel()
	v := viewOf(t, ramped[uint8](400), 20, 20)
	if err := PNG(t.Context(), new(failing), v, PNGOptions{}); !errors.Is(err, errFull) {
		t.Errorf("PNG: %v", err)
	}
	if err := Text(t.Context(), new(failing), v, TextOptions{}); !errors.Is(err, errFull) {
		t.Errorf("Text: %v", err)
	}
}

func TestPlotsMarkTheRange(t *testing.T) {
	t.Parallel()
	img := decoded(t, viewOf(t, []float64{0, 1, math.NaN(), -1}), PNGOptions{})
	if got := img.Bounds(); got != image.Rect(0, 0, plotWidth, plotHeight) {
		t.Fatalf("bounds %v", got)
	}
	area := plotArea()
	ink := colourMap(0.35)
	column := func(i int) int { return area.Min.X + area.Dx()*(2*i+1)/8 }
	for i, want := range []int{at(area, 0, -1, 1), at(area, 1, -1, 1), -1, at(area, -1, -1, 1)} {
		found := -1
		for y := range plotHeight {
			if nrgba(img.At(column(i), y)) == ink {
				found = y
				break
			}
		}
		if found != want {
			t.Errorf("column %d has ink at %d, want %d", i, found, want)
		}
	}
	if all := at(area, 1, -1, 1); all < area.Min.Y || at(area, -1, -1, 1) >= area.Max.Y {
		t.Error("the curve leaves its area")
	}
}
