package render

import (
	"image/color"
	"math"

	"github.com/ndbridge/ndbridge/core"
)

// shader gives the numbers of one point their colour. Where there is nothing to see, its alpha is 0.
type shader func(point []float64) color.NRGBA

// shaderOf chooses how the points of g, sampled from elements of type d, are coloured: bytes are taken
// for brightness, as pictures mean them; other numbers are spread over a colour map from the least to
// the greatest.
//
// Fractions of three or four channels are colours only if all are between 0 and 1. If they are not, the
// grid of their first channel comes back in place of g.
func shaderOf(g *grid, d core.DType) (*grid, shader) {
	lo, hi, ok := g.bounds()
	if g.channels > 1 {
		switch {
		case d == core.Uint8:
			return g, channelsOf(255)
		case d == core.Uint16:
			return g, channelsOf(65535)
		case !ok || lo >= 0 && hi <= 1:
			return g, channelsOf(1)
		}
		g = g.first()
		lo, hi, ok = g.bounds()
	}
	if isGray(d) {
		if d == core.Bool {
			return g, func(p []float64) color.NRGBA { return gray(p[0]) }
		}
		return g, func(p []float64) color.NRGBA { return gray(p[0] / 255) }
	}
	if !ok {
		lo, hi = 0, 0
	}
	return g, func(p []float64) color.NRGBA {
		if math.IsNaN(p[0]) {
			return color.NRGBA{}
		}
		return colourMap(spread(p[0], lo, hi))
	}
}

// isGray reports whether elements are drawn in shades of gray.
func isGray(d core.DType) bool { return d == core.Uint8 || d == core.Bool }

// spread maps lo to 0 and hi to 1; infinities fall on the ends. If all numbers are one, it is in the
// middle.
func spread(x, lo, hi float64) float64 {
	switch {
	case hi > lo:
		return min(max(x/2-lo/2, 0)/(hi/2-lo/2), 1) // halved: hi - lo may overflow
	case x > hi:
		return 1
	case x < lo:
		return 0
	}
	return 0.5
}

func channelsOf(full float64) shader {
	return func(p []float64) color.NRGBA {
		c := color.NRGBA{level(p[0] / full), level(p[1] / full), level(p[2] / full), 255}
		if len(p) == 4 {
			c.A = level(p[3] / full)
		}
		if math.IsNaN(p[0] + p[1] + p[2]) {
			c.A = 0
		}
		return c
	}
}

func gray(x float64) color.NRGBA {
	y := level(x)
	return color.NRGBA{y, y, y, 255}
}

// level is a brightness between 0 and 1 as a byte.
func level(x float64) uint8 { return uint8(math.Round(255 * min(max(x, 0), 1))) }

// colourMap gives a number between 0 and 1 the colour of viridis: a map of even perceived contrast,
// which also those with a weak colour sense and printers without colour can tell.
func colourMap(x float64) color.NRGBA {
	stops := [...][3]float64{ // every eighth of the map; public domain (CC0)
		{68, 1, 84},
		{71, 44, 122},
		{59, 81, 139},
		{44, 113, 142},
		{33, 144, 141},
		{39, 173, 129},
		{92, 200, 99},
		{170, 220, 50},
		{253, 231, 37},
	}
	at := x * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	mix := func(channel int) uint8 {
		a, b := stops[i][channel], stops[i+1][channel]
		return uint8(math.Round(a + (b-a)*(at-float64(i))))
	}
	return color.NRGBA{mix(0), mix(1), mix(2), 255}
}

// luma is the perceived brightness of a colour over black, between 0 and 1.
func luma(c color.NRGBA) float64 {
	return (0.2126*float64(c.R) + 0.7152*float64(c.G) + 0.0722*float64(c.B)) * float64(c.A) / (255 * 255)
}
