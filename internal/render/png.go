package render

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// DefaultSize is how many points a picture is wide or high at most, unless more are asked for.
const DefaultSize = 1024

// maxPoints is how many points a picture may have: more would take gigabytes to draw.
const maxPoints = 1 << 26

// PNGOptions says how a picture is drawn.
type PNGOptions struct {
	// Size is the largest width and height. A larger array is averaged over areas; a smaller one has a
	// point for each element. 0 means DefaultSize; less than 0 draws every element, however many.
	Size int
}

// PNG draws v as a PNG file: arrays of bytes as the picture that they are (gray, RGB or RGBA), other
// planes through a colour map, an array of one axis as a curve, and of an array of more axes the first
// plane. What is NaN is transparent.
//
// Elements without a known value are refused with core.ErrDType, arrays without elements or with too
// many with core.ErrLayout, and those on a device with core.ErrDevice.
func PNG(ctx context.Context, w io.Writer, v *core.View, opts PNGOptions) error {
	img, err := picture(ctx, v, opts.Size)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if b := img.Bounds(); b.Dx()*b.Dy() < 1<<22 {
		enc.CompressionLevel = png.DefaultCompression
	}
	if err := errors.Join(enc.Encode(out, img), out.Flush()); err != nil {
		return fmt.Errorf("draw %s: %w", v.Name(), err)
	}
	return nil
}

// picture draws v in at most size by size points.
func picture(ctx context.Context, v *core.View, size int) (_ image.Image, err error) {
	p, err := choose(v)
	if err != nil {
		return nil, err
	}
	if p.form == nothing {
		return nil, undrawable(v)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.form == scalar || p.form == curve {
		c, err := curveOf(ctx, p.View, plotArea().Dx())
		if err != nil {
			return nil, err
		}
		return c.plot(), nil
	}
	w, h := p.Dim(1), p.Dim(0)
	if size == 0 {
		size = DefaultSize
	}
	if size > 0 {
		w, h = fit(w, h, size, size)
	}
	if w > maxPoints/h {
		return nil, &core.Error{
			Op: "draw", Object: v.Name(), Kind: core.ErrLayout,
			Err:    fmt.Errorf("%d by %d points are more than %d", w, h, maxPoints),
			Remedy: "ask for a smaller picture",
		}
	}
	g, err := sample(ctx, p, w, h)
	if err != nil {
		return nil, err
	}
	return g.image(numbers.TypeOf(p.Layout()).DType), nil
}

// undrawable says why nothing can be drawn of v.
func undrawable(v *core.View) error {
	e := &core.Error{Op: "draw", Object: v.Name(), Kind: core.ErrLayout, Err: errors.New("it has no elements")}
	if v.Len() > 0 {
		e.Kind = core.ErrDType
		e.Err = fmt.Errorf("nothing is known of the value of %s", elementName(v.Layout()))
		e.Remedy = "give the program an array of numbers, or take the bytes"
	}
	return e
}

// elementName is the type of the elements of l in the words that say most.
func elementName(l core.Layout) string {
	if l.Tag() != "" {
		return l.Tag()
	}
	return l.DType().String()
}

// image colours the points.
func (g *grid) image(d core.DType) image.Image {
	g, shade := shaderOf(g, d)
	bounds := image.Rect(0, 0, g.w, g.h)
	if g.channels == 1 && isGray(d) {
		img := image.NewGray(bounds)
		for i := range g.pix {
			img.Pix[i] = shade(g.pix[i : i+1]).R
		}
		return img
	}
	img := image.NewNRGBA(bounds)
	for i := range g.w * g.h {
		c := shade(g.pix[i*g.channels:][:g.channels])
		copy(img.Pix[4*i:], []uint8{c.R, c.G, c.B, c.A})
	}
	return img
}
