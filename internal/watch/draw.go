package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/stats"
)

// Frame says how a state is drawn.
type Frame struct {
	Columns, Lines int
	Colours        bool
	First          int // the array that is drawn first
}

const (
	blockLines = 4  // of an array that is drawn in full, with an empty one
	sparkWidth = 40 // of the history

	nameWidth   = 28 // of a name, in front of a line
	lineFigures = 90 // columns of the figures of a line
	badFigures  = 5  // where figuresOf has NaN and infinities
)

// Draw draws a state for a terminal: in full as long as there is room for that, and else a line for each array.
func Draw(s State, f Frame) []string {
	lines := []string{render.Clip(head(s), f.Columns), ""}
	room := max(f.Lines-len(lines)-1, 1)
	full := len(s.Arrays)*blockLines <= room
	name := 1
	for _, a := range s.Arrays {
		name = min(max(name, utf8.RuneCountInString(prose.Line(a.Name))), nameWidth, max(f.Columns/2, 1))
	}
	first := min(f.First, max(len(s.Arrays)-1, 0))
	for _, a := range s.Arrays[first:] {
		var block []string
		if full {
			block = append(drawArray(a, f), "")
		} else {
			block = []string{drawLine(a, f, name)}
		}
		if room -= len(block); room < 0 {
			break
		}
		lines = append(lines, block...)
	}
	if n := len(s.Events); n > 0 {
		lines = append(lines, paint(render.Clip("last alarm: "+prose.Line(s.Events[n-1].String()), f.Columns), alarmed, f))
	}
	return lines
}

// head says what is watched, and what that costs.
func head(s State) string {
	arrays := "arrays"
	if len(s.Arrays) == 1 {
		arrays = "array"
	}
	text := fmt.Sprintf("%d %s, every %s, %.2g %% of a core", len(s.Arrays), arrays, s.Usage.Interval.Round(10*time.Millisecond), 100*s.Usage.Share)
	for _, a := range s.Arrays {
		if n := len(a.History); n > 0 && a.History[n-1].Step != nil {
			return text + ", step " + Figure(*a.History[n-1].Step)
		}
	}
	return text
}

// Figure writes a figure as people read it.
func Figure(n stats.Number) string {
	x := float64(n)
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64) // a count of steps
	}
	return strconv.FormatFloat(x, 'g', 5, 64)
}

// Sum writes the figures of the last look in one line.
func Sum(a Series) string { return strings.Join(figuresOf(a), "  ") }

func figuresOf(a Series) []string {
	p := a.History[len(a.History)-1]
	if a.Number {
		return []string{Figure(p.Mean)}
	}
	texts := []string{
		"mean " + Figure(p.Mean), "std " + Figure(p.Std), "norm " + Figure(p.Norm), "min " + Figure(p.Min), "max " + Figure(p.Max),
		fmt.Sprintf("nan %d  inf %d", p.NaN, p.Inf),
	}
	if !p.Exact {
		texts = append(texts, "(sample)")
	}
	return texts
}

// fit joins as many figures as there is room for. It leaves out whole ones: the beginning of a number is another number.
func fit(figures []string, columns int) string {
	text := strings.Join(figures, "  ")
	for n := len(figures) - 1; n >= 0 && utf8.RuneCountInString(text) > columns; n-- {
		text = strings.Join(append(figures[:n:n], "…"), "  ")
	}
	return text
}

func drawArray(a Series, f Frame) []string {
	title := fmt.Sprintf("%s  %s%s", prose.Line(a.Name), kind(a), raised(a))
	lines := []string{paint(render.Clip(title, f.Columns), colourOf(a), f)}
	switch {
	case a.Error != "":
		return append(lines, render.Clip("  "+prose.Line(a.Error), f.Columns), "")
	case len(a.History) == 0:
		return append(lines, "  no look yet", "")
	}
	lines = append(lines, "  "+fit(figuresOf(a), f.Columns-2))
	width := min(sparkWidth, max((f.Columns-30)/2, 8))
	text := fmt.Sprintf("  norm %-*s", width, history(a, width))
	if a.Number {
		text = "  " + history(a, width)
	}
	if counts, low, high := bins(a.Last, width); counts != "" {
		text += fmt.Sprintf("  %s %s %s", low, counts, high)
	}
	return append(lines, render.Clip(text, f.Columns))
}

// drawLine draws an array in one line, whose name has so many columns. The history comes last: it goes first where there is
// no room.
func drawLine(a Series, f Frame, name int) string {
	const spark = 16
	text := prose.Line(a.Name)
	if utf8.RuneCountInString(text) > name {
		runes := []rune(text)
		text = "…" + string(runes[len(runes)-name+1:])
	}
	text += strings.Repeat(" ", name-utf8.RuneCountInString(text)+1)
	switch {
	case a.Error != "":
		text = render.Clip(text+prose.Line(a.Error), f.Columns)
	case len(a.History) > 0:
		p := a.History[len(a.History)-1]
		figures := figuresOf(a)
		if p.NaN+p.Inf > 0 && !a.Number { // these matter most
			bad := figures[badFigures]
			figures = slices.Insert(slices.Delete(figures, badFigures, badFigures+1), 0, bad)
		}
		if marks := strings.TrimSpace(raised(a)); marks != "" {
			figures = slices.Insert(figures, 0, marks)
		}
		if room := f.Columns - name - 1; room >= lineFigures+2+spark {
			text += fmt.Sprintf("%-*s  %s", lineFigures, fit(figures, lineFigures), history(a, spark))
		} else {
			text += fit(figures, room)
		}
	}
	return paint(text, colourOf(a), f)
}

// raised names the alarms whose condition is met.
func raised(a Series) string {
	if len(a.Raised) == 0 {
		return ""
	}
	return "  ! " + prose.Line(strings.Join(a.Raised, "  ! "))
}

func kind(a Series) string {
	if a.Type == "" || a.Number {
		return prose.Line(a.Type)
	}
	return fmt.Sprintf("%s %v  %s", prose.Line(a.Type), a.Shape, render.Size(a.NBytes))
}

// history draws the norms of the last looks, and of a number its values.
func history(a Series, width int) string {
	points := a.History[max(len(a.History)-width, 0):]
	xs, lo, hi := make([]float64, len(points)), math.Inf(1), math.Inf(-1)
	for i, p := range points {
		xs[i] = float64(p.Norm)
		if a.Number {
			xs[i] = float64(p.Mean)
		}
		if xs[i]-xs[i] == 0 {
			lo, hi = min(lo, xs[i]), max(hi, xs[i])
		}
	}
	return strings.Join(render.Bars(xs, lo, hi, 1), "")
}

// bins draws a histogram in at most width columns.
func bins(s *stats.Summary, width int) (counts, low, high string) {
	h := s.Histogram
	if len(h.Counts) == 0 {
		return "", "", ""
	}
	columns := min(width, len(h.Counts))
	xs, most := make([]float64, columns), 0.0
	for i, n := range h.Counts {
		at := i * columns / len(h.Counts)
		xs[at] += float64(n)
		most = max(most, xs[at])
	}
	for i, x := range xs {
		if x == 0 {
			xs[i] = math.NaN()
		}
	}
	text := strings.Join(render.Bars(xs, 0, most, 1), "")
	text += strings.Repeat(" ", columns-utf8.RuneCountInString(text))
	return text, Figure(stats.Number(h.Edges[0])), Figure(stats.Number(h.Edges[len(h.Edges)-1]))
}

// The colours of lines.
const (
	plain   = ""
	alarmed = "31"
	failing = "33"
)

func colourOf(a Series) string {
	switch {
	case len(a.Raised) > 0:
		return alarmed
	case a.Error != "":
		return failing
	}
	return plain
}

func paint(text, colour string, f Frame) string {
	if colour == plain || !f.Colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
