package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// row is what is drawn of a row of the report.
type row struct {
	Way       string  `json:"way"`
	Framework string  `json:"framework"`
	Bytes     float64 `json:"bytes"`
	Callers   int     `json:"callers"`
	P50       float64 `json:"p50_ns"`
	P99       float64 `json:"p99_ns"`
}

// draw draws a report of the benchmark. One of parts that have no sizes has no picture, which it says.
func draw(from, to string, say io.Writer) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var report struct{ Rows []row }
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	all := lines(report.Rows)
	if len(all) == 0 {
		_, err := fmt.Fprintln(say, "no picture is drawn: nothing was measured by size")
		return err
	}
	p, err := picture(all)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return p.Save(12*vg.Inch, 7*vg.Inch, to)
}

// line is one way with one framework, by size.
type line struct {
	name   string
	median plotter.XYs
	tail   plotter.YErrors // from the median up to the 99th percentile
}

// XY and YError make a line one with error bars.
func (l line) Len() int                       { return len(l.median) }
func (l line) XY(i int) (x, y float64)        { return l.median.XY(i) }
func (l line) YError(i int) (low, up float64) { return l.tail[i].Low, l.tail[i].High }

// lines puts rows of one caller together, the slowest way first, as they stand in the picture. What was measured for
// one size only is not in it.
func lines(rows []row) []line {
	byName := map[string]*line{}
	for _, r := range rows {
		// Of our other ways, one framework shows what they are about.
		special := strings.HasPrefix(r.Way, "ndbridge,") && r.Framework != "numpy"
		if r.Bytes == 0 || r.Callers > 1 || special {
			continue
		}
		name := r.Way + ", " + r.Framework
		if byName[name] == nil {
			byName[name] = &line{name: name}
		}
		l := byName[name]
		l.median = append(l.median, plotter.XY{X: r.Bytes, Y: r.P50 / 1e3})
		l.tail = append(l.tail, struct{ Low, High float64 }{0, (r.P99 - r.P50) / 1e3})
	}
	all := make([]line, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if l := byName[name]; l.Len() > 1 {
			all = append(all, *l)
		}
	}
	slices.SortStableFunc(all, func(a, b line) int {
		if a.median[len(a.median)-1].Y > b.median[len(b.median)-1].Y {
			return -1
		}
		return 1
	})
	return all
}

func picture(all []line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Time until another process has the array: median, and bar to the 99th percentile"
	p.Y.Label.Text = "microseconds"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizes(all)
	p.Legend.TextStyle.Font.Size = font.Points(9)
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	var widest float64
	for i, l := range all {
		bars, err := plotter.NewYErrorBars(l)
		if err != nil {
			return nil, err
		}
		curve, points, err := plotter.NewLinePoints(l.median)
		if err != nil {
			return nil, err
		}
		c := colour(l.name, i)
		bars.Color, curve.Color, points.Color, points.Shape = c, c, c, plotutil.Shape(i)
		if strings.HasPrefix(l.name, "ndbridge") {
			curve.Width = vg.Points(2)
		}
		points.Radius = vg.Points(3)
		p.Add(bars, curve, points)
		p.Legend.Add(l.name, curve, points)
		widest = max(widest, l.median[len(l.median)-1].X)
	}
	p.X.Max = widest * 200 // room for the legend
	return p, nil
}

// colour makes ours warm and the others cool.
func colour(name string, i int) color.Color {
	if strings.HasPrefix(name, "ndbridge") {
		return color.RGBA{R: 214, G: uint8(40 + i*29%120), B: 40, A: 255}
	}
	return color.RGBA{R: uint8(i * 37 % 110), G: uint8(80 + i*53%120), B: uint8(120 + i*31%120), A: 255}
}

// sizes marks the sizes that were measured.
func sizes(all []line) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, l := range all {
		for _, at := range l.median {
			if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == at.X }) {
				ticks = append(ticks, plot.Tick{Value: at.X, Label: size(at.X)})
			}
		}
	}
	return ticks
}

func size(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if bytes < 1024 {
			return fmt.Sprintf("%g %s", bytes, unit)
		}
		bytes /= 1024
	}
	return fmt.Sprintf("%g GiB", bytes)
}
