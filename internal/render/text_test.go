package render

import (
	"bytes"
	"image/color"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/golden"
)

// TestText compares drawings with those in testdata, in which ESC stands for the escape character.
func TestText(t *testing.T) {
	t.Parallel()
	hill := make([]float32, 60*80)
	for i := range hill {
		x, y := float64(i%80)-40, float64(i/80)-30
		hill[i] = float32(math.Exp(-(x*x + 2*y*y) / 800))
	}
	hole := append([]float32{}, hill...)
	for i := range hole {
		if i%80 < 20 && i/80 < 20 {
			hole[i] = float32(math.NaN())
		}
	}
	wave := make([]float64, 1000)
	for i := range wave {
		wave[i] = math.Sin(float64(i) / 50)
	}
	wave[500] = math.NaN() // hidden by its neighbours
	flag := ramped[uint8](6 * 8 * 4)
	checks := make([]bool, 9*9)
	for i := range checks {
		checks[i] = i%2 == 0
	}
	dates := make([]byte, 40)
	dates[1], dates[8] = 1, 0xff
	opaque := func(size int) core.DType {
		d, err := core.Opaque(size)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	gap := []float64{1, 2, math.NaN(), 4, 5, math.Inf(1), 3, 2, 1}

	cases := map[string]struct {
		view *core.View
		opts TextOptions
	}{
		"hill":        {viewOf(t, hill, 60, 80), TextOptions{Columns: 40, Rows: 12}},
		"hole":        {viewOf(t, hole, 60, 80), TextOptions{Columns: 40, Rows: 12}},
		"hill-true":   {viewOf(t, hill, 60, 80), TextOptions{Columns: 8, Rows: 3, Depth: TrueColour}},
		"hole-true":   {viewOf(t, hole, 60, 80), TextOptions{Columns: 8, Rows: 3, Depth: TrueColour}},
		"hill-256":    {viewOf(t, hill, 60, 80), TextOptions{Columns: 8, Rows: 3, Depth: Colours256}},
		"rgba":        {viewOf(t, flag, 6, 8, 4), TextOptions{Columns: 8, Rows: 3, Depth: TrueColour}},
		"planes":      {viewOf(t, hill, 3, 20, 80), TextOptions{Columns: 40, Rows: 10}},
		"checks":      {viewOf(t, checks, 9, 9), TextOptions{}},
		"wave":        {viewOf(t, wave), TextOptions{Columns: 60}},
		"wave-low":    {viewOf(t, wave), TextOptions{Columns: 60, Rows: 1}},
		"gap":         {viewOf(t, gap), TextOptions{}},
		"constant":    {viewOf(t, make([]float32, 30)), TextOptions{}},
		"nothing":     {viewOf(t, []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}), TextOptions{}},
		"scalar":      {bytesView(t, []byte{0, 0, 0x20, 0xc0}, core.LayoutSpec{DType: core.Float32}), TextOptions{}},
		"numbers":     {viewOf(t, []float64{1, -2.5, math.Pi, math.NaN(), math.Inf(-1), 1e-9}, 2, 3), TextOptions{}},
		"int64":       {viewOf(t, []int64{math.MinInt64, 1<<53 + 1, 0}), TextOptions{}},
		"uint64":      {viewOf(t, []uint64{math.MaxUint64, 7}), TextOptions{}},
		"bools":       {viewOf(t, []bool{true, false}), TextOptions{}},
		"complex":     {viewOf(t, []complex64{1 + 2i, -1.5 - 1i, complex(0, float32(math.Inf(1)))}), TextOptions{}},
		"halves":      {viewOf(t, []core.F16{core.F16Of(0.1), core.F16Of(65504)}), TextOptions{}},
		"float8":      {bytesView(t, []byte{0x38, 0x7f, 0x01}, core.LayoutSpec{DType: coretest.DType("float8_e4m3fn"), Shape: []int{3}}), TextOptions{}},
		"int4":        {bytesView(t, []byte{0x8f, 0x07}, core.LayoutSpec{DType: core.Int4, Shape: []int{3}}), TextOptions{}},
		"int4-plane":  {bytesView(t, bytes.Repeat([]byte{0x10, 0x32, 0x54, 0x76}, 12), core.LayoutSpec{DType: core.Int4, Shape: []int{12, 8}}), TextOptions{}},
		"dates":       {bytesView(t, dates, core.LayoutSpec{DType: opaque(8), Tag: "datetime64[ns]", Shape: []int{5}}), TextOptions{}},
		"records":     {bytesView(t, make([]byte, 64), core.LayoutSpec{DType: opaque(32), Shape: []int{2}}), TextOptions{Columns: 40}},
		"no-elements": {viewOf(t, []float32{}, 0, 3), TextOptions{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Text(t.Context(), &out, c.view, c.opts); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".txt"), bytes.ReplaceAll(out.Bytes(), []byte("\x1b"), []byte("ESC")))
		})
	}
}

func TestPictureStaysInItsFrame(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{1000, 9}, {9, 1000}, {40, 40}, {9, 9}, {2, 3000}} {
		v := viewOf(t, ramped[float32](shape[0]*shape[1]), shape...)
		for _, opts := range []TextOptions{{Columns: 30, Rows: 7}, {Columns: 5, Rows: 30}, {Columns: 1, Rows: 1}} {
			var out bytes.Buffer
			if err := Text(t.Context(), &out, v, opts); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) > opts.Rows {
				t.Errorf("%v in %d by %d: %d lines", shape, opts.Columns, opts.Rows, len(lines))
			}
			for _, line := range lines {
				if len(line) > opts.Columns {
					t.Errorf("%v in %d by %d: line of %d characters", shape, opts.Columns, opts.Rows, len(line))
				}
			}
		}
	}
}

func TestPaletteIsNear(t *testing.T) {
	t.Parallel()
	cases := map[color.NRGBA]string{
		{0, 0, 0, 255}:       "5;16",
		{255, 255, 255, 255}: "5;231",
		{128, 128, 128, 255}: "5;244",
		{255, 0, 0, 255}:     "5;196",
		{95, 135, 175, 255}:  "5;67",
		{3, 3, 3, 255}:       "5;16",
		{238, 238, 238, 255}: "5;255",
		{255, 255, 255, 0}:   "5;16",
	}
	for c, want := range cases {
		if got := palette(c); got != want {
			t.Errorf("%v: got %s, want %s", c, got, want)
		}
	}
}
