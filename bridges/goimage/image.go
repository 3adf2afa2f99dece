package goimage

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"github.com/ndbridge/ndbridge/core"
)

// Image is a picture of 1, 3 or 4 channels of 8 or 16 bits over the memory of a view of any strides. It is a
// draw.RGBA64Image. Several goroutines may read it, or draw into different parts of it.
type Image struct {
	plane
	name     string
	writable bool
}

var _ draw.RGBA64Image = (*Image)(nil)

// New returns a view of uint8 or uint16 as a picture over the same memory. Three channels are red, green and blue; the
// fourth is alpha, by which the others are not multiplied. Errors wrap core.ErrDType for other elements, and
// core.ErrLayout for other shapes.
func New(v *core.View) (*Image, error) {
	p, err := planeOf("picture", v)
	if err != nil {
		return nil, err
	}
	if d := v.DType(); d != core.Uint8 && d != core.Uint16 {
		remedy := "convert the array in Python"
		if v.Layout().Tag() == ">u2" {
			remedy = "use Gray16"
		}
		return nil, fail("picture", v, core.ErrDType, fmt.Errorf("want uint8 or uint16, have %v", v.Layout()), remedy)
	}
	if p.channels != 1 && p.channels != 3 && p.channels != 4 {
		return nil, fail("picture", v, core.ErrLayout, fmt.Errorf("want 1, 3 or 4 channels, have %d", p.channels), "if they come first, use v.Transpose(1, 2, 0)")
	}
	return &Image{plane: p, name: v.Name(), writable: v.Writable()}, nil
}

// Bounds implements image.Image. A picture begins at (0, 0), and a part of it where SubImage was told.
func (m *Image) Bounds() image.Rectangle { return m.rect }

// ColorModel implements image.Image. Three channels are colours without alpha.
func (m *Image) ColorModel() color.Model {
	switch {
	case m.channels == 1 && m.size == 1:
		return color.GrayModel
	case m.channels == 1:
		return color.Gray16Model
	case m.channels == 3 && m.size == 1:
		return color.RGBAModel
	case m.channels == 3:
		return color.RGBA64Model
	case m.size == 1:
		return color.NRGBAModel
	default:
		return color.NRGBA64Model
	}
}

// At implements image.Image. Outside of Bounds there is no colour.
func (m *Image) At(x, y int) color.Color {
	if !(image.Point{X: x, Y: y}).In(m.rect) {
		return m.ColorModel().Convert(color.RGBA64{})
	}
	o := m.at(x, y)
	switch {
	case m.size == 1 && m.channels == 1:
		return color.Gray{Y: m.pix[o]}
	case m.size == 1 && m.channels == 3:
		return color.RGBA{R: m.pix[o], G: m.pix[o+m.channel], B: m.pix[o+2*m.channel], A: 0xff}
	case m.size == 1:
		return color.NRGBA{R: m.pix[o], G: m.pix[o+m.channel], B: m.pix[o+2*m.channel], A: m.pix[o+3*m.channel]}
	case m.channels == 1:
		return color.Gray16{Y: m.load(o)}
	case m.channels == 3:
		return color.RGBA64{R: m.load(o), G: m.load(o + m.channel), B: m.load(o + 2*m.channel), A: 0xffff}
	default:
		return color.NRGBA64{R: m.load(o), G: m.load(o + m.channel), B: m.load(o + 2*m.channel), A: m.load(o + 3*m.channel)}
	}
}

// RGBA64At implements image.RGBA64Image: it is At without an allocation.
func (m *Image) RGBA64At(x, y int) color.RGBA64 {
	if !(image.Point{X: x, Y: y}).In(m.rect) {
		return color.RGBA64{}
	}
	o := m.at(x, y)
	r := m.load(o)
	if m.channels == 1 {
		return color.RGBA64{R: r, G: r, B: r, A: 0xffff}
	}
	g, b := m.load(o+m.channel), m.load(o+2*m.channel)
	if m.channels == 3 {
		return color.RGBA64{R: r, G: g, B: b, A: 0xffff}
	}
	c := color.NRGBA64{R: r, G: g, B: b, A: m.load(o + 3*m.channel)}
	cr, cg, cb, ca := c.RGBA()
	return color.RGBA64{R: uint16(cr), G: uint16(cg), B: uint16(cb), A: uint16(ca)}
}

// Set implements draw.Image. Three channels have no alpha: they get the colour as it is over black. Set panics with an
// error that wraps core.ErrReadOnly if the view is not writable.
func (m *Image) Set(x, y int, c color.Color) {
	m.mustWrite()
	if !(image.Point{X: x, Y: y}).In(m.rect) {
		return
	}
	o := m.at(x, y)
	switch m.channels {
	case 1:
		g, _ := color.Gray16Model.Convert(c).(color.Gray16)
		m.store(o, g.Y)
	case 3:
		r, g, b, _ := c.RGBA()
		m.store(o, uint16(r))
		m.store(o+m.channel, uint16(g))
		m.store(o+2*m.channel, uint16(b))
	default:
		n, _ := color.NRGBA64Model.Convert(c).(color.NRGBA64)
		m.store(o, n.R)
		m.store(o+m.channel, n.G)
		m.store(o+2*m.channel, n.B)
		m.store(o+3*m.channel, n.A)
	}
}

// SetRGBA64 implements draw.RGBA64Image: it is Set for three channels without an allocation.
func (m *Image) SetRGBA64(x, y int, c color.RGBA64) {
	if m.channels != 3 {
		m.Set(x, y, c)
		return
	}
	m.mustWrite()
	if !(image.Point{X: x, Y: y}).In(m.rect) {
		return
	}
	o := m.at(x, y)
	m.store(o, c.R)
	m.store(o+m.channel, c.G)
	m.store(o+2*m.channel, c.B)
}

// SubImage returns the part of m inside r, over the same memory, in the coordinates of m.
func (m *Image) SubImage(r image.Rectangle) image.Image {
	r = r.Intersect(m.rect)
	part := *m
	part.rect = r
	if r.Empty() {
		part.rect = image.Rectangle{}
		return &part
	}
	part.offset = m.at(r.Min.X, r.Min.Y)
	return &part
}

// Opaque reports whether every point is without transparency.
func (m *Image) Opaque() bool {
	if m.channels < 4 {
		return true
	}
	for y := m.rect.Min.Y; y < m.rect.Max.Y; y++ {
		for x := m.rect.Min.X; x < m.rect.Max.X; x++ {
			if m.load(m.at(x, y)+3*m.channel) != 0xffff {
				return false
			}
		}
	}
	return true
}

// at is where in pix a point inside m lies.
func (m *Image) at(x, y int) int {
	return m.offset + (y-m.rect.Min.Y)*m.row + (x-m.rect.Min.X)*m.col
}

// load reads a channel as 16 bits.
func (m *Image) load(o int) uint16 {
	if m.size == 1 {
		return uint16(m.pix[o]) * 0x101
	}
	return *word(m.pix[o:])
}

// store writes a channel of 16 bits.
func (m *Image) store(o int, x uint16) {
	if m.size == 1 {
		m.pix[o] = uint8(x >> 8)
		return
	}
	*word(m.pix[o:]) = x
}

func (m *Image) mustWrite() {
	if !m.writable {
		panic(&core.Error{
			Op: "draw", Object: m.name, Kind: core.ErrReadOnly, Err: errNotWritable,
			Remedy: "take the view with hostplugin.Writable()",
		})
	}
}
