package stats

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// None stands for an axis that a [Plane] does not have.
const None = -1

// Plane is a slice of an array along two of its axes.
type Plane struct {
	Y, X int   // the axes of rows and columns; None for a picture of one row or one column
	At   []int // the index along each axis of the array, of which those of Y and X do not count; nil: all 0
}

// PlaneOf is the plane that most people want to see of an array: along the last two axes with more than one element, at
// index 0 of all others.
func PlaneOf(l core.Layout) Plane {
	p := Plane{None, None, make([]int, l.Rank())}
	for i := range l.Rank() {
		if l.Dim(i) > 1 {
			p.Y, p.X = p.X, i
		}
	}
	return p
}

// CellOptions says how elements become cells. The zero value, as a nil *CellOptions, means all elements.
type CellOptions struct {
	PerCell int        // look at no more than so many elements of each cell, one of each of equal parts; 0: all
	Base    *core.View // is subtracted first; see Options.Base
	Workers int        // 0: GOMAXPROCS
}

// Cells is a plane of an array, divided into Width x Height cells of neighbours. Cell x of row y has index y*Width + x in
// each slice.
type Cells struct {
	Width, Height  int
	Rows, Columns  int       // of the plane: elements
	Min, Max, Mean []float64 // of a cell's finite elements; NaN if there is none
	NaN, Inf       []int     // of a cell's elements that were looked at
	Seen           int       // elements looked at
	Torn           bool      // see Summary.Torn
	Version        uint64
}

// Exact reports whether all elements of the plane were looked at.
func (c *Cells) Exact() bool { return c.Seen == c.Rows*c.Columns }

// Image divides a plane of v into at most width x height cells: as many as there are elements, if that is less. Where cells
// cannot be equal, sizes differ by one element. Column i of n, of a plane of c columns, begins at element i*c/n.
//
// The errors are those of [Of]; ErrLayout is that of a plane that v does not have.
func Image(ctx context.Context, v *core.View, p Plane, width, height int, opts *CellOptions) (*Cells, error) {
	if opts == nil {
		opts = new(CellOptions)
	}
	if width < 1 || height < 1 || opts.PerCell < 0 || opts.Workers < 0 {
		return nil, &core.Error{
			Op: "stats", Object: v.Name(), Kind: core.ErrConfig,
			Err: fmt.Errorf("%d x %d cells of %d elements with %d workers", width, height, opts.PerCell, opts.Workers),
		}
	}
	plane, err := p.of(v)
	if err != nil {
		return nil, err
	}
	defer plane.Close() //nolint:errcheck // derived, so there is nothing to give back
	src, err := newSource(ctx, plane, nil, 0, false)
	if err == nil && opts.Base != nil {
		var base *core.View
		if base, err = p.of(opts.Base); err == nil {
			defer base.Close() //nolint:errcheck // derived, so there is nothing to give back
			err = src.subtract(ctx, plane, base, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	rows, columns := 1, 1
	if p.Y != None {
		rows = v.Dim(p.Y)
	}
	if p.X != None {
		columns = v.Dim(p.X)
	}
	src.coalesce()
	d := newDrawing(src, rows, columns, min(width, columns), min(height, rows), opts.PerCell)
	if err := d.run(ctx, opts.Workers); err != nil {
		return nil, err
	}
	d.Torn, d.Version = Torn(v), v.Version()
	return &d.Cells, nil
}

// Line divides one axis of v into at most n cells, at one index of each other axis: an Image of one row.
func Line(ctx context.Context, v *core.View, axis int, at []int, n int, opts *CellOptions) (*Cells, error) {
	return Image(ctx, v, Plane{None, axis, at}, n, 1, opts)
}

// of gives a view of the plane, with Y before X.
func (p Plane) of(v *core.View) (*core.View, error) {
	rank := v.Rank()
	fail := func(format string, args ...any) (*core.View, error) {
		return nil, &core.Error{Op: "stats", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf(format, args...)}
	}
	if p.At != nil && len(p.At) != rank {
		return fail("%d indices for %d axes", len(p.At), rank)
	}
	var perm []int
	for _, axis := range []int{p.Y, p.X} {
		switch {
		case axis == None:
		case axis < 0 || axis >= rank:
			return fail("no axis %d among %d", axis, rank)
		case slices.Contains(perm, axis):
			return fail("rows and columns are both axis %d", axis)
		default:
			perm = append(perm, axis)
		}
	}
	kept := len(perm)
	for axis := range rank {
		if axis != p.Y && axis != p.X {
			perm = append(perm, axis)
		}
	}
	w, err := v.Transpose(perm...)
	for i := rank - 1; i >= kept && err == nil; i-- {
		at := 0
		if p.At != nil {
			at = p.At[perm[i]]
		}
		var next *core.View
		next, err = w.Select(i, at)
		_ = w.Close() // derived, so there is nothing to give back
		w = next
	}
	return w, err
}

// drawing is an image that is being made.
type drawing struct {
	Cells

	src          *source
	stepX, stepY int
	edges        []int // of the cells of a row, in elements: one more than there are cells
	few          bool  // elements of a cell in a line: one by one takes less than to sum them up in blocks
}

func newDrawing(src *source, rows, columns, width, height, perCell int) *drawing {
	n := width * height
	d := &drawing{src: src, stepX: 1, stepY: 1, Cells: Cells{
		Width: width, Height: height, Rows: rows, Columns: columns,
		Min: make([]float64, n), Max: make([]float64, n), Mean: make([]float64, n), NaN: make([]int, n), Inf: make([]int, n),
	}}
	for x := range width + 1 {
		d.edges = append(d.edges, muldiv(columns, x, width))
	}
	if n == 0 || perCell == 0 {
		d.few = columns < 16*width
		return d
	}
	// As many steps along both axes as make a cell small enough; the rest goes to that with more elements.
	wide, high := ceil(columns, width), ceil(rows, height)
	for {
		x, y := ceil(wide, d.stepX), ceil(high, d.stepY)
		switch {
		case x*y <= perCell:
			d.few = x < 16
			return d
		case x > y: // at once until it is no more than that of the other axis, or than a cell
			d.stepX = max(d.stepX+1, ceil(wide, max(y, perCell)))
		default:
			d.stepY = max(d.stepY+1, ceil(high, max(x, perCell)))
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// somewhere gives one of n places, for each step another one: elements at equal distances might all be of one kind, as every second one is.
func somewhere(step, n int) int {
	if n == 1 {
		return 0
	}
	place, _ := bits.Mul64(scatter(uint64(step)), uint64(n)) //nolint:gosec // both are positive
	return int(place)                                        //nolint:gosec // it is below n
}

// run fills rows of cells on several goroutines, the caller's among them.
func (d *drawing) run(ctx context.Context, workers int) error {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(min(workers, d.Height), 1)
	var (
		next, seen atomic.Int64
		errs       = make([]error, workers)
	)
	spread(workers, func(w int) {
		buf, sums := make([]float64, 2*blockLen), make([]moments, d.Width)
		for y := int(next.Add(1)) - 1; y < d.Height && errs[w] == nil; y = int(next.Add(1)) - 1 {
			var n int
			n, errs[w] = d.row(ctx, y, sums, buf)
			seen.Add(int64(n))
		}
	})
	d.Seen = int(seen.Load())
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// row fills one row of cells, and says how many elements it looked at.
func (d *drawing) row(ctx context.Context, y int, sums []moments, buf []float64) (seen int, err error) {
	clear(sums)
	from, to := muldiv(d.Rows, y, d.Height), muldiv(d.Rows, y+1, d.Height)
	for step := from; step < to && err == nil; step += d.stepY {
		line := step + somewhere(step, min(d.stepY, to-step))
		err = d.src.touch(ctx, buf[blockLen:], func(r reader) error {
			switch {
			case d.stepX > 1:
				seen += d.sparse(sums, line, buf[:blockLen], r)
			case d.few:
				seen += d.line(sums, line, buf[:blockLen], r)
			default:
				for x := range sums {
					seen += d.cell(&sums[x], x, line, buf[:blockLen], r)
				}
			}
			return nil
		})
	}
	for x, m := range sums {
		i := y*d.Width + x
		d.NaN[i], d.Inf[i] = m.nan, m.posInf+m.negInf
		d.Min[i], d.Max[i], d.Mean[i] = m.low, m.high, m.mean
		if m.finite() == 0 {
			d.Min[i], d.Max[i], d.Mean[i] = math.NaN(), math.NaN(), math.NaN()
		}
	}
	return seen, err
}

// line adds all elements of a line to their cells.
func (d *drawing) line(sums []moments, line int, buf []float64, r reader) (seen int) {
	x := 0
	for from := 0; from < d.Columns; from += len(buf) {
		part := buf[:min(len(buf), d.Columns-from)]
		r.fill(part, line*d.Columns+from)
		for i, value := range part {
			for from+i >= d.edges[x+1] {
				x++
			}
			sums[x].add(value)
		}
	}
	return d.Columns
}

// cell adds what one line of elements has in one cell.
func (d *drawing) cell(m *moments, x, line int, buf []float64, r reader) (seen int) {
	from, to := d.edges[x], d.edges[x+1]
	for at := from; at < to; at += len(buf) {
		part := buf[:min(len(buf), to-at)]
		r.fill(part, line*d.Columns+at)
		b, _ := block(part)
		m.merge(&b)
	}
	return to - from
}

// sparse adds some elements of a line to their cells. It reads many before it adds any: none lies beside another, so that each is
// waited for, which takes no longer for several at once.
func (d *drawing) sparse(sums []moments, line int, buf []float64, r reader) (seen int) {
	x, from := 0, 0
	next := func(picks int) {
		if from += picks * d.stepX; from >= d.edges[x+1] {
			x++
			from = d.edges[x]
		}
	}
	for x < d.Width {
		beginX, begin, n := x, from, 0
		for ; n < len(buf) && x < d.Width; next(1) {
			at := line*d.Columns + from
			r.fill(buf[n:n+1], at+somewhere(at, min(d.stepX, d.edges[x+1]-from)))
			n++
		}
		seen += n
		x, from = beginX, begin
		for part := buf[:n]; len(part) > 0; {
			picks, m := min(ceil(d.edges[x+1]-from, d.stepX), len(part)), &sums[x]
			if d.few {
				for _, value := range part[:picks] {
					m.add(value)
				}
			} else {
				b, _ := block(part[:picks])
				m.merge(&b)
			}
			part = part[picks:]
			next(picks)
		}
	}
	return seen
}
