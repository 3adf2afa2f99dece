package goimage

import (
	"errors"
	"fmt"
	"image"

	"github.com/ndbridge/ndbridge/core"
)

// Of returns v as a picture: an *image.Gray, *image.Gray16 or *image.NRGBA if v has their form, and else an [Image]. Its
// errors are those of New.
func Of(v *core.View) (image.Image, error) {
	if g, err := Gray(v); err == nil {
		return g, nil
	}
	if g, err := Gray16(v); err == nil {
		return g, nil
	}
	if n, err := NRGBA(v); err == nil {
		return n, nil
	}
	return New(v)
}

// Gray returns a view of uint8 with one channel as a picture over the same memory. Errors wrap core.ErrDType for other
// elements, and core.ErrLayout for other shapes and for points that do not follow each other in a row.
func Gray(v *core.View) (*image.Gray, error) {
	p, err := points("gray", v, core.Uint8, "", 1)
	if err != nil {
		return nil, err
	}
	return &image.Gray{Pix: p.pix, Stride: p.row, Rect: p.rect}, nil
}

// Gray16 is Gray for 16 bits, which package image has in big-endian order: NumPy's ">u2". For those in the order of
// this machine there is New.
func Gray16(v *core.View) (*image.Gray16, error) {
	big, err := core.Opaque(2)
	if err != nil {
		return nil, err
	}
	p, err := points("gray16", v, big, ">u2", 1)
	if err != nil {
		return nil, err
	}
	return &image.Gray16{Pix: p.pix, Stride: p.row, Rect: p.rect}, nil
}

// RGBA is Gray for four channels, the last of which is alpha, by which the others are multiplied already.
func RGBA(v *core.View) (*image.RGBA, error) {
	p, err := points("rgba", v, core.Uint8, "", 4)
	if err != nil {
		return nil, err
	}
	return &image.RGBA{Pix: p.pix, Stride: p.row, Rect: p.rect}, nil
}

// NRGBA is Gray for four channels, the last of which is alpha, by which the others are not multiplied. Pillow's and
// OpenCV's pictures are such.
func NRGBA(v *core.View) (*image.NRGBA, error) {
	p, err := points("nrgba", v, core.Uint8, "", 4)
	if err != nil {
		return nil, err
	}
	return &image.NRGBA{Pix: p.pix, Stride: p.row, Rect: p.rect}, nil
}

// points gives the points of v, which must follow each other as package image wants them.
func points(op string, v *core.View, want core.DType, tag string, channels int) (plane, error) {
	p, err := planeOf(op, v)
	switch {
	case err != nil:
		return plane{}, err
	case v.DType() != want || v.Layout().Tag() != tag:
		have := v.DType().String()
		if v.Layout().Tag() != "" {
			have = v.Layout().Tag()
		}
		wanted := want.String()
		if tag != "" {
			wanted = tag
		}
		return plane{}, fail(op, v, core.ErrDType, fmt.Errorf("want %s, have %s", wanted, have), "use New for uint16")
	case p.channels != channels:
		return plane{}, fail(op, v, core.ErrLayout, fmt.Errorf("want %d channels, have %d", channels, p.channels), "use New")
	case v.Len() == 0:
		return p, nil
	case p.col != channels*p.size || channels > 1 && p.channel != p.size || p.row < p.rect.Dx()*p.col:
		return plane{}, fail(op, v, core.ErrLayout, fmt.Errorf("strides %v: the points of a row do not follow each other", v.Strides()), "use New")
	}
	return p, nil
}

// plane is where the points of a picture lie.
type plane struct {
	pix           []byte // all that they span
	offset        int    // of the first point in pix
	row, col      int    // bytes from one point to the next
	channel, size int    // bytes from one channel to the next, and of each
	channels      int
	rect          image.Rectangle
}

func planeOf(op string, v *core.View) (plane, error) {
	l := v.Layout()
	if l.Rank() != 2 && l.Rank() != 3 {
		return plane{}, fail(op, v, core.ErrLayout, fmt.Errorf("want height, width and perhaps channels, have %d axes", l.Rank()), "select one picture of several with v.Select")
	}
	memory, _, release, err := v.Acquire()
	if err != nil {
		return plane{}, err
	}
	defer release() // from here on v keeps the memory
	p := plane{row: l.Stride(0), col: l.Stride(1), channels: 1, size: l.DType().Size(), rect: image.Rect(0, 0, l.Dim(1), l.Dim(0))}
	if l.Rank() == 3 {
		p.channel, p.channels = l.Stride(2), l.Dim(2)
	}
	if l.Len() == 0 {
		p.rect = image.Rectangle{}
		return p, nil
	}
	all := memory.Bytes()
	if all == nil {
		return plane{}, fail(op, v, core.ErrDevice, fmt.Errorf("the host cannot read memory of %v", l.Device()), "use core.Copy")
	}
	lo, hi := l.Span()
	p.pix, p.offset = all[lo:hi:hi], l.Offset()-lo
	if l.Dim(1) == 1 {
		p.col = p.channels * p.size // nobody goes from one column to the next
	}
	if l.Dim(0) == 1 {
		p.row = l.Dim(1) * p.col
	}
	return p, nil
}

func fail(op string, v *core.View, kind, cause error, remedy string) error {
	return &core.Error{Op: op, Object: v.Name(), Kind: kind, Err: cause, Remedy: remedy}
}

var errNotWritable = errors.New("the view of this picture is not writable")
