package render

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

const (
	// oversample is how many elements along each axis an average of a point reads at most. More of
	// them would cost time and hardly change a picture.
	oversample = 4
	// maxPacked is how many elements that share bytes are unpacked at once.
	maxPacked = 1 << 26
)

// grid is a picture before it has colours: h rows of w points of some channels.
type grid struct {
	w, h, channels int
	pix            []float64
}

func newGrid(w, h, channels int) *grid {
	return &grid{w, h, channels, make([]float64, w*h*channels)}
}

// row gives the numbers of one row of points.
func (g *grid) row(y int) []float64 { return g.pix[y*g.w*g.channels:][:g.w*g.channels] }

// bounds gives the least and the greatest finite number, or ok = false if there is none.
func (g *grid) bounds() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, x := range g.pix {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	return lo, hi, lo <= hi
}

// first keeps the first channel.
func (g *grid) first() *grid {
	one := newGrid(g.w, g.h, 1)
	for i := range one.pix {
		one.pix[i] = g.pix[i*g.channels]
	}
	return one
}

// fit scales a size so that it does not exceed a frame; the proportions stay.
func fit(w, h, maxW, maxH int) (int, int) {
	scale := min(1, float64(maxW)/float64(w), float64(maxH)/float64(h))
	return min(max(int(math.Round(float64(w)*scale)), 1), maxW),
		min(max(int(math.Round(float64(h)*scale)), 1), maxH)
}

// sample averages a plane or a coloured picture over w by h equal areas, of at least one element each.
func sample(ctx context.Context, p part, w, h int) (*grid, error) {
	channels := 1
	if p.form == colour {
		channels = p.Dim(2)
	}
	rows, err := rowsOf(ctx, p.View, max(p.Dim(1)/(oversample*w), 1), max(p.Dim(0)/(oversample*h), 1))
	if err != nil {
		return nil, err
	}
	g := newGrid(w, h, channels)
	mean := newAverage(w * channels)
	var line []float64
	for y := range rows.n {
		if line, err = rows.read(line[:0], y); err != nil {
			return nil, errors.Join(err, rows.close())
		}
		mean.add(line, w, channels)
		if at := y * h / rows.n; y+1 == rows.n || (y+1)*h/rows.n != at {
			mean.take(g.row(at))
		}
	}
	return g, rows.close()
}

// rowReader reads the rows of a plane.
type rowReader struct {
	n     int
	read  func(dst []float64, y int) ([]float64, error)
	close func() error
}

// rowsOf reads every stepY-th row of v, and every stepX-th point of it.
func rowsOf(ctx context.Context, v *core.View, stepX, stepY int) (rowReader, error) {
	if v.DType().Packed() {
		return packedRows(ctx, v)
	}
	v, err := v.Step(0, stepY)
	if err == nil {
		v, err = next(v, func(v *core.View) (*core.View, error) { return v.Step(1, stepX) })
	}
	if err != nil {
		return rowReader{}, err
	}
	raw := make([]byte, v.NBytes()/int64(v.Dim(0)))
	read := func(dst []float64, y int) ([]float64, error) {
		row, err := v.Select(0, y)
		if err != nil {
			return dst, err
		}
		_, err = core.CopyBytes(ctx, raw, row)
		return numbers.Append(dst, raw, numbers.TypeOf(v.Layout()), row.Len()), errors.Join(err, row.Close())
	}
	return rowReader{v.Dim(0), read, v.Close}, nil
}

// packedRows unpacks all elements at once: parts of packed arrays cannot be had.
func packedRows(ctx context.Context, v *core.View) (rowReader, error) {
	if v.Len() > maxPacked {
		return rowReader{}, &core.Error{
			Op: "draw", Object: v.Name(), Kind: core.ErrLayout,
			Err: fmt.Errorf("%d elements that share bytes are more than %d", v.Len(), maxPacked),
		}
	}
	raw := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(ctx, raw, v); err != nil {
		return rowReader{}, err
	}
	all := numbers.Append(make([]float64, 0, v.Len()), raw, numbers.TypeOf(v.Layout()), v.Len())
	width := v.Len() / v.Dim(0)
	read := func(dst []float64, y int) ([]float64, error) { return append(dst, all[y*width:][:width]...), nil }
	return rowReader{v.Dim(0), read, func() error { return nil }}, nil
}

// average gathers the numbers of several rows for one row of points. An average leaves out what is not
// finite, unless there is nothing else.
type average struct {
	sum, odd []float64 // odd: the sum of what is not finite
	n        []int     // of the finite ones
	any      []int
}

func newAverage(n int) *average {
	return &average{make([]float64, n), make([]float64, n), make([]int, n), make([]int, n)}
}

// add adds a row of at least w points to w averages of each channel.
func (a *average) add(line []float64, w, channels int) {
	points := len(line) / channels
	for i, x := range line {
		a.put(i/channels*w/points*channels+i%channels, x)
	}
}

func (a *average) put(i int, x float64) {
	a.any[i]++
	if x-x == 0 { // finite
		a.sum[i] += x
		a.n[i]++
	} else {
		a.odd[i] += x
	}
}

// take writes the averages to dst and begins anew.
func (a *average) take(dst []float64) {
	for i := range dst {
		switch {
		case a.n[i] > 0:
			dst[i] = a.sum[i] / float64(a.n[i])
		case a.any[i] > 0:
			dst[i] = a.odd[i]
		default:
			dst[i] = math.NaN()
		}
	}
	clear(a.sum)
	clear(a.odd)
	clear(a.n)
	clear(a.any)
}
