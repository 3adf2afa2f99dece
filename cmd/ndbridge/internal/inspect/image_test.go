package inspect

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// imageOf draws an array as an image, and gives what a page gets of it.
func imageOf(t *testing.T, v *core.View, l look) (p picture, points []byte, err error) {
	t.Helper()
	l = l.fit(v.Layout())
	m, err := drawImage(t.Context(), v, l, picture{Rows: l.Rows, Columns: l.Columns})
	if err != nil {
		return p, nil, err
	}
	text := m.bytes[4:][:binary.LittleEndian.Uint32(m.bytes)]
	points = m.bytes[4+len(text):]
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if len(points) != 4*p.Width*p.Height {
		t.Fatalf("%d bytes of %d x %d points", len(points), p.Width, p.Height)
	}
	return p, points, nil
}

// TestImages compares each point that is drawn with the elements of the array that it shows.
func TestImages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		order         string
		n, h, w, c    int
		before        []int // further axes in front, of which the last indices are shown
		width, height int   // of the look
		sheet         [2]int
		step          int
	}{
		{order: "HW", n: 1, h: 5, w: 7, c: 1, sheet: [2]int{1, 1}, step: 1},
		{order: "HW", n: 1, h: 50, w: 70, c: 1, width: 33, height: 40, sheet: [2]int{1, 1}, step: 3},
		{order: "HWC", n: 1, h: 5, w: 7, c: 3, sheet: [2]int{1, 1}, step: 1},
		{order: "HWC", n: 1, h: 5, w: 7, c: 4, sheet: [2]int{1, 1}, step: 1},
		{order: "HWC", n: 1, h: 5, w: 7, c: 1, sheet: [2]int{1, 1}, step: 1},
		{order: "HWC", n: 1, h: 5, w: 7, c: 2, sheet: [2]int{1, 1}, step: 1},
		{order: "HWC", n: 1, h: 5, w: 7, c: 6, sheet: [2]int{1, 1}, step: 1},
		{order: "CHW", n: 1, h: 5, w: 7, c: 3, sheet: [2]int{1, 1}, step: 1},
		{order: "CHW", n: 1, h: 64, w: 48, c: 4, width: 20, height: 20, sheet: [2]int{1, 1}, step: 4},
		{order: "NHW", n: 16, h: 28, w: 28, c: 1, sheet: [2]int{4, 4}, step: 1},
		{order: "NHW", n: 7, h: 10, w: 11, c: 1, sheet: [2]int{3, 3}, step: 1}, // two places are empty
		{order: "NHWC", n: 5, h: 6, w: 9, c: 3, sheet: [2]int{3, 2}, step: 1},
		{order: "NHWC", n: 5, h: 6, w: 9, c: 3, width: 8, height: 8, sheet: [2]int{3, 2}, step: 3},
		{order: "NCHW", n: 5, h: 9, w: 6, c: 3, sheet: [2]int{2, 3}, step: 1},
		{order: "NCHW", n: 3, h: 4, w: 4, c: 3, before: []int{2, 3}, sheet: [2]int{2, 2}, step: 1},
		{order: "NHW", n: maxTiles + 1, h: 2, w: 2, c: 1, sheet: [2]int{10, 10}, step: 1}, // the first of them
		{order: "nhwc", n: 2, h: 3, w: 3, c: 3, sheet: [2]int{1, 2}, step: 1},
	} {
		sizes := map[rune]int{'N': tt.n, 'H': tt.h, 'W': tt.w, 'C': tt.c}
		shape := append([]int{}, tt.before...)
		for _, letter := range strings.ToUpper(tt.order) {
			shape = append(shape, sizes[letter])
		}
		offset, index := 0, make([]int, len(shape))
		for i, n := range tt.before {
			index[i] = n - 1
			offset = offset*n + n - 1
		}
		element := func(n, y, x, c int) byte { // what the array has there
			places, i := map[rune]int{'N': n, 'H': y, 'W': x, 'C': c}, offset
			for _, letter := range strings.ToUpper(tt.order) {
				i = i*sizes[letter] + places[letter]
			}
			return scrambled(i)
		}
		all := 1
		for _, n := range shape {
			all *= n
		}
		data := make([]byte, all)
		for i := range data {
			data[i] = scrambled(i)
		}
		l := look{Image: tt.order, Width: tt.width, Height: tt.height, At: index, Auto: true}
		if l.Width == 0 {
			l.Width, l.Height = 512, 512
		}
		p, points, err := imageOf(t, coretest.NewView(t, data, shape...), l)
		if err != nil {
			t.Errorf("%s of %v: %v", tt.order, shape, err)
			continue
		}
		tiles := min(tt.n, maxTiles)
		h, w := ceil(tt.h, tt.step), ceil(tt.w, tt.step)
		if p.Sheet != tt.sheet || p.Step != tt.step || p.Tiles != tiles || p.Exact != (tt.step == 1) || p.Width != p.Sheet[1]*w || p.Height != p.Sheet[0]*h ||
			p.Rows != [2]int{0, tt.h} || p.Columns != [2]int{0, tt.w} || p.Low != 0 || p.High != 255 {
			t.Errorf("%s of %v: %+v", tt.order, shape, p)
			continue
		}
		for i := range p.Width * p.Height {
			y, x := i/p.Width, i%p.Width
			n := y/h*p.Sheet[1] + x/w
			var want [4]byte // an empty place
			if n < tiles {
				for k := range want {
					want[k] = 255
					switch {
					case k < 3 && tt.c < 3:
						want[k] = element(n, y%h*tt.step, x%w*tt.step, 0)
					case k < 3 || tt.c == 4:
						want[k] = element(n, y%h*tt.step, x%w*tt.step, k)
					}
				}
			}
			if got := [4]byte(points[4*i:]); got != want {
				t.Errorf("%s of %v: picture %d has %v at row %d, column %d; want %v", tt.order, shape, n, got, y%h, x%w, want)
				break
			}
		}
	}
}

// scrambled is an element that tells where it is.
func scrambled(i int) byte { return byte(uint32(i) * 2654435761 >> 24) } //nolint:gosec // any byte will do

// TestBrightness says which numbers are black and white.
func TestBrightness(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	view := func(data ...float64) *core.View { return coretest.NewView(t, data, 1, len(data)) }
	for name, tt := range map[string]struct {
		v         *core.View
		low, high float64
		want      []byte
	}{
		"fractions":        {view(0, 0.25, 1), 0, 1, []byte{0, 64, 255}},
		"bytes as numbers": {view(0, 100, 200), 0, 255, []byte{0, 100, 200}},
		"others":           {view(-10, 0, 10), -10, 10, []byte{0, 128, 255}},
		"large":            {view(0, 500, 1000), 0, 1000, []byte{0, 128, 255}},
		"one number":       {view(-3, -3), -3, -2, []byte{0, 0}},
		"not numbers":      {view(nan, 0.5, inf, -inf), 0, 1, []byte{0, 128, 255, 0}},
		"none":             {view(nan, nan), 0, 1, []byte{0, 0}},
		"uint16":           {coretest.NewView(t, []uint16{0, 257, 65535}, 1, 3), 0, 65535, []byte{0, 1, 255}},
		"int8":             {coretest.NewView(t, []int8{-128, 0, 127}, 1, 3), -128, 127, []byte{0, 128, 255}},
		"magnitudes":       {coretest.NewView(t, []complex128{3 + 4i, -50i}, 1, 2), 0, 255, []byte{5, 50}},
		"bool":             {coretest.NewView(t, []bool{true, false}, 1, 2), 0, 1, []byte{255, 0}},
	} {
		p, points, err := imageOf(t, tt.v, look{Image: "HW", Width: 9, Height: 9, Auto: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if float64(p.Low) != tt.low || float64(p.High) != tt.high {
			t.Errorf("%s: from %v to %v, want from %v to %v", name, p.Low, p.High, tt.low, tt.high)
		}
		for i, want := range tt.want {
			if got := [4]byte(points[4*i:]); got != [4]byte{want, want, want, 255} {
				t.Errorf("%s: point %d is %v, want %d", name, i, got, want)
			}
		}
	}
}

// TestNoImage refuses what is no picture, and says so.
func TestNoImage(t *testing.T) {
	t.Parallel()
	square := coretest.NewView(t, make([]byte, 16), 4, 4)
	for _, order := range []string{"HWC", "NHWC", "H", "W", "HC", "HX", "HWCNN", "HWNCHW"} {
		if _, _, err := imageOf(t, square, look{Image: order, Width: 9, Height: 9, Auto: true}); !errors.Is(err, core.ErrLayout) {
			t.Errorf("%s: %v, want %v", order, err, core.ErrLayout)
		}
	}
	if _, _, err := imageOf(t, coretest.NewView(t, []byte{}, 0, 4), look{Image: "HW", Width: 9, Height: 9, Auto: true}); !errors.Is(err, core.ErrDType) {
		t.Errorf("of no elements: %v, want %v", err, core.ErrDType)
	}
}
