package render

import (
	"fmt"
	"image/color"
	"math"
	"strings"
)

// points shades two rows of points, y and the one below. A row that is not there is transparent.
func (g *grid) points(shade shader, y int) (upper, lower []color.NRGBA) {
	upper, lower = make([]color.NRGBA, g.w), make([]color.NRGBA, g.w)
	for x := range g.w {
		upper[x] = shade(g.row(y)[x*g.channels:][:g.channels])
		if y+1 < g.h {
			lower[x] = shade(g.row(y + 1)[x*g.channels:][:g.channels])
		}
	}
	return upper, lower
}

// halfBlocks draws two points with each character: an upper half block has a foreground and a
// background.
func (g *grid) halfBlocks(shade shader, depth Depth) []string {
	code := trueColour
	if depth == Colours256 {
		code = palette
	}
	var lines []string
	for y := 0; y < g.h; y += 2 {
		var b strings.Builder
		pen := ""
		upper, lower := g.points(shade, y)
		for x := range g.w {
			up, low := upper[x], lower[x]
			var style string
			block := "▀"
			switch {
			case up.A == 0 && low.A == 0:
				block, style = " ", "\x1b[0m"
			case up.A == 0:
				block, style = "▄", "\x1b[0;38;"+code(low)+"m"
			case low.A == 0:
				style = "\x1b[0;38;" + code(up) + "m"
			default:
				style = "\x1b[38;" + code(up) + ";48;" + code(low) + "m"
			}
			if style != pen {
				b.WriteString(style)
				pen = style
			}
			b.WriteString(block)
		}
		lines = append(lines, b.String()+"\x1b[0m")
	}
	return lines
}

// overBlack is what a colour looks like on a black ground.
func overBlack(c color.NRGBA) (r, g, b int) {
	a := int(c.A)
	return int(c.R) * a / 255, int(c.G) * a / 255, int(c.B) * a / 255
}

func trueColour(c color.NRGBA) string {
	r, g, b := overBlack(c)
	return fmt.Sprintf("2;%d;%d;%d", r, g, b)
}

// palette finds the nearest of the 256 colours: 16 to 231 are a cube of six levels, 232 to 255 grays
// from 8 to 238.
func palette(c color.NRGBA) string {
	levels := [6]int{0, 95, 135, 175, 215, 255}
	nearest := func(x int) int {
		best := 0
		for i, l := range levels {
			if abs(l-x) < abs(levels[best]-x) {
				best = i
			}
		}
		return best
	}
	distance := func(a, b [3]int) (d int) {
		for i := range a {
			d += (a[i] - b[i]) * (a[i] - b[i])
		}
		return d
	}
	r, g, b := overBlack(c)
	want := [3]int{r, g, b}
	cube := [3]int{nearest(r), nearest(g), nearest(b)}
	step := min(max((r+g+b)/3-3, 0)/10, 23)
	level := 8 + 10*step
	if distance(want, [3]int{level, level, level}) <
		distance(want, [3]int{levels[cube[0]], levels[cube[1]], levels[cube[2]]}) {
		return fmt.Sprintf("5;%d", 232+step)
	}
	return fmt.Sprintf("5;%d", 16+36*cube[0]+6*cube[1]+cube[2])
}

// ramp is a scale of characters from the lightest to the heaviest. It is ASCII, which no terminal, log
// or mail spoils.
const ramp = " .:-=+*#%@"

// shades draws two points with each character, by its weight. Where there is nothing to see, there is
// a question mark.
func (g *grid) shades(shade shader) []string {
	lo, hi := 1.0, 0.0
	for y := range g.h {
		upper, _ := g.points(shade, y)
		for _, c := range upper {
			if c.A > 0 {
				lo, hi = min(lo, luma(c)), max(hi, luma(c))
			}
		}
	}
	var lines []string
	for y := 0; y < g.h; y += 2 {
		line := make([]byte, g.w)
		upper, lower := g.points(shade, y)
		for x := range line {
			line[x] = '?'
			sum, n := 0.0, 0.0
			for _, c := range []color.NRGBA{upper[x], lower[x]} {
				if c.A > 0 {
					sum += luma(c)
					n++
				}
			}
			if n > 0 {
				line[x] = ramp[int(math.Round(spread(sum/n, lo, hi)*float64(len(ramp)-1)))]
			}
		}
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	return lines
}

// bars draws the means of the columns as bars of some lines in height.
func (s *series) bars(height int) []string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range s.mean {
		if !math.IsNaN(x) {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	return Bars(s.mean, lo, hi, height)
}

// Bars draws numbers as bars of some lines in height, in eighths of a line: the lowest for lo, and the highest for hi.
// Where there is NaN, there is no bar. If lo is above hi, there is nothing to draw.
func Bars(xs []float64, lo, hi float64, height int) []string {
	eighths := []rune(" ▁▂▃▄▅▆▇█")
	if lo > hi {
		return nil
	}
	lines := make([]string, height)
	for row := range lines {
		line := make([]rune, len(xs))
		for i, x := range xs {
			line[i] = ' '
			if !math.IsNaN(x) {
				level := 1 + int(math.Round(spread(x, lo, hi)*float64(8*height-1)))
				line[i] = eighths[min(max(level-8*(height-1-row), 0), 8)]
			}
		}
		lines[row] = strings.TrimRight(string(line), " ")
	}
	return lines
}

func abs(x int) int { return max(x, -x) }
