package render

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"strconv"
)

// The size of the picture of a curve, the room around it, and that for the labels at its left.
const (
	plotWidth  = 1024
	plotHeight = 384
	plotMargin = 28
	plotLabels = 104
)

// plotArea is where the curve itself goes.
func plotArea() image.Rectangle {
	return image.Rect(plotLabels, plotMargin, plotWidth-plotMargin, plotHeight-plotMargin)
}

// plot draws a curve, with the least and greatest number at its left and the first and last index below.
// A column that stands for several elements is a bar from the least to the greatest of them.
func (s *series) plot() image.Image {
	var (
		paper = color.NRGBA{255, 255, 255, 255}
		frame = color.NRGBA{200, 200, 200, 255}
		ink   = colourMap(0.35)
		text  = color.NRGBA{64, 64, 64, 255}
	)
	img := image.NewNRGBA(image.Rect(0, 0, plotWidth, plotHeight))
	draw.Draw(img, img.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	area := plotArea()
	line := func(y int) {
		draw.Draw(img, image.Rect(area.Min.X, y, area.Max.X, y+1), image.NewUniform(frame), image.Point{}, draw.Src)
	}
	line(area.Min.Y - 2)
	line(area.Max.Y + 1)
	below := area.Max.Y + 10
	label(img, area.Min.X, below, "0", text)
	if s.n > 1 {
		last := strconv.Itoa(s.n - 1)
		label(img, area.Max.X-glyphStep*len(last), below, last, text)
	}
	lo, hi, ok := s.bounds()
	if !ok {
		return img
	}
	left := func(y int, x float64) {
		number := short(x)
		label(img, area.Min.X-8-glyphStep*len(number), y-glyphScale*5/2, number, text)
	}
	left(area.Min.Y, hi)
	if lo < hi {
		left(area.Max.Y, lo)
	}
	if lo < 0 && hi > 0 {
		line(at(area, 0, lo, hi))
	}
	s.draw(img, area, ink)
	return img
}

// draw draws the columns. Neighbours are joined, so that a curve of few elements has no gaps.
func (s *series) draw(img *image.NRGBA, area image.Rectangle, ink color.NRGBA) {
	lo, hi, _ := s.bounds()
	n := len(s.low)
	columnAt := func(x int) int { return (x - area.Min.X) * n / area.Dx() }
	for x := area.Min.X; x < area.Max.X; x++ {
		i := columnAt(x)
		if math.IsNaN(s.low[i]) {
			continue
		}
		low, high := s.low[i], s.high[i]
		if before := columnAt(max(x-1, area.Min.X)); before != i && !math.IsNaN(s.low[before]) {
			low, high = min(low, s.high[before]), max(high, s.low[before])
		}
		for y := at(area, high, lo, hi); y <= at(area, low, lo, hi); y++ {
			img.SetNRGBA(x, y, ink)
			img.SetNRGBA(x, y+1, ink)
		}
	}
}

// at is the line on which a number lies.
func at(area image.Rectangle, x, lo, hi float64) int {
	return area.Max.Y - 1 - int(math.Round(spread(x, lo, hi)*float64(area.Dy()-2)))
}

// short is a number in as few characters as a label has room for.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }

// Glyphs are three points wide and five high, drawn twice as large.
const (
	glyphScale = 2
	glyphStep  = 4 * glyphScale
)

// glyphs holds what numbers are written with: five rows of three bits each, the first row first.
func glyphs(r rune) uint16 {
	return map[rune]uint16{
		'0': 0b111_101_101_101_111, '1': 0b010_110_010_010_111, '2': 0b111_001_111_100_111,
		'3': 0b111_001_111_001_111, '4': 0b101_101_111_001_001, '5': 0b111_100_111_001_111,
		'6': 0b111_100_111_101_111, '7': 0b111_001_010_010_010, '8': 0b111_101_111_101_111,
		'9': 0b111_101_111_001_111, '-': 0b000_000_111_000_000, '+': 0b000_010_111_010_000,
		'.': 0b000_000_000_000_010, 'e': 0b000_111_110_100_111,
	}[r]
}

// label writes a number; its upper left corner is at x, y.
func label(img *image.NRGBA, x, y int, text string, c color.NRGBA) {
	for _, r := range text {
		g := glyphs(r)
		for i := range 15 {
			if g>>(14-i)&1 == 1 {
				dot := image.Rect(0, 0, glyphScale, glyphScale).Add(image.Pt(x+i%3*glyphScale, y+i/3*glyphScale))
				draw.Draw(img, dot, image.NewUniform(c), image.Point{}, draw.Src)
			}
		}
		x += glyphStep
	}
}
