package render

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// Depth is what a terminal can show of colours.
type Depth uint8

// The depths. The zero value is for files, pipes and terminals without colours.
const (
	Mono       Depth = iota // characters of different weight
	Colours256              // the palette that all colour terminals know
	TrueColour              // any colour
)

// TextOptions says what there is to draw on.
type TextOptions struct {
	Columns int // characters a line; 0 means 72
	Rows    int // lines; 0 means 20
	Depth   Depth
}

// Text draws v with characters: numbers if they are few, else a curve, or the picture of a plane. If
// only a part of v can be drawn, a line above says which. Of elements without a known value it shows
// the first bytes. Arrays without elements have no picture, and those on a device are refused with
// core.ErrDevice.
func Text(ctx context.Context, w io.Writer, v *core.View, opts TextOptions) error {
	if v.Len() == 0 {
		return nil
	}
	if opts.Columns <= 0 {
		opts.Columns = 72
	}
	if opts.Rows <= 0 {
		opts.Rows = 20
	}
	lines, err := textLines(ctx, v, opts)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, line := range lines {
		_, _ = fmt.Fprintln(out, line) // Flush has the error
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("draw %s: %w", v.Name(), err)
	}
	return nil
}

func textLines(ctx context.Context, v *core.View, opts TextOptions) (_ []string, err error) {
	switch {
	case !numbers.TypeOf(v.Layout()).Known():
		return hexLines(ctx, v, opts.Columns)
	case few(v.Layout()):
		return numberLines(ctx, v)
	}
	p, err := choose(v)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var lines []string
	if p.index != "" {
		lines = append(lines, p.index)
	}
	if p.form == curve || p.form == scalar {
		s, err := curveOf(ctx, p.View, opts.Columns)
		if err != nil {
			return nil, err
		}
		return append(lines, s.bars(min(opts.Rows, 4))...), nil
	}
	// A character is twice as high as it is wide: it shows two points, one above the other.
	w, h := fit(p.Dim(1), p.Dim(0), opts.Columns, 2*opts.Rows)
	g, err := sample(ctx, p, w, h)
	if err != nil {
		return nil, err
	}
	g, shade := shaderOf(g.enlarge(min(opts.Columns/w, 2*opts.Rows/h, 4)), numbers.TypeOf(p.Layout()).DType)
	if opts.Depth == Mono {
		return append(lines, g.shades(shade)...), nil
	}
	return append(lines, g.halfBlocks(shade, opts.Depth)...), nil
}

// enlarge makes each point zoom times as wide and high.
func (g *grid) enlarge(zoom int) *grid {
	if zoom <= 1 {
		return g
	}
	large := newGrid(g.w*zoom, g.h*zoom, g.channels)
	for y := range large.h {
		row := large.row(y)
		for x := range large.w {
			copy(row[x*g.channels:][:g.channels], g.row(y / zoom)[x/zoom*g.channels:])
		}
	}
	return large
}
