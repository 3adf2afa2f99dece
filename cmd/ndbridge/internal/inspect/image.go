package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
	"github.com/ndbridge/ndbridge/stats"
)

// maxTiles is how many pictures a contact sheet has at most: the first of a batch.
const maxTiles = 100

// sheet is a picture, or several beside each other, as they are drawn.
type sheet struct {
	tiles         *core.View // with the axes of the pictures, their rows, columns and channels
	n, rows, cols int        // tiles
	step          int        // every which point is drawn
	height, width int        // of a tile
	h, w          int        // of a tile, in points that are drawn
	channels      int        // that are drawn: grey, red, green and blue, or these and alpha
	batch         bool
}

// drawImage draws an array as the picture that it is, or the pictures. Behind the header stand the points, four bytes each:
// red, green, blue and alpha.
func drawImage(ctx context.Context, v *core.View, l look, p picture) (message, error) {
	s, err := newSheet(v, l)
	if err != nil {
		return message{}, err
	}
	defer s.tiles.Close() //nolint:errcheck // derived
	p.Kind, p.Sheet, p.Tiles, p.Step = "image", [2]int{s.rows, s.cols}, s.n, s.step
	p.Rows, p.Columns = [2]int{0, s.height}, [2]int{0, s.width}
	p.Width, p.Height = s.cols*s.w, s.rows*s.h
	p.Exact = s.step == 1
	tiles := make([][]byte, s.n)
	for i := range tiles {
		if tiles[i], err = s.tile(ctx, i); err != nil {
			return message{}, err
		}
	}
	d := numbers.TypeOf(v.Layout())
	if d.DType != core.Uint8 {
		low, full := brightness(d, tiles)
		for i := range tiles {
			tiles[i] = leveled(tiles[i], d, low, full)
		}
		p.Low, p.High = stats.Number(low), stats.Number(full)
	} else {
		p.High = 255
	}
	m, points := roomBehind(p, 4*p.Width*p.Height)
	for i, tile := range tiles {
		s.place(points, tile, i/s.cols, i%s.cols)
	}
	return m, nil
}

// newSheet takes the axes that the look's letters name, the last ones of the array.
func newSheet(v *core.View, l look) (*sheet, error) {
	order, rank := strings.ToUpper(l.Image), v.Rank()
	first := rank - len(order)
	at := func(letter string) int {
		if i := strings.Index(order, letter); i >= 0 {
			return first + i
		}
		return -1
	}
	n, y, x, c := at("N"), at("H"), at("W"), at("C")
	if first < 0 || y < 0 || x < 0 || strings.Trim(order, "NHWC") != "" || len(order) > 4 {
		return nil, &core.Error{
			Op: "draw", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("an array of %d axes is no picture of order %q", rank, order),
		}
	}
	if !numbers.TypeOf(v.Layout()).Known() || v.DType().Packed() || v.Len() == 0 {
		return nil, &core.Error{Op: "draw", Object: v.Name(), Kind: core.ErrDType, Err: errors.New("its elements are no points of a picture")}
	}
	var perm, others []int
	for _, axis := range []int{n, y, x, c} {
		if axis >= 0 {
			perm = append(perm, axis)
		}
	}
	for axis := range first {
		others = append(others, axis)
	}
	w, err := v.Transpose(append(others, perm...)...)
	s := &sheet{n: 1, rows: 1, cols: 1, channels: 1}
	if err == nil && c >= 0 {
		s.channels = drawn(v.Dim(c))
		w, err = derive(w, func(w *core.View) (*core.View, error) { return w.Sub(w.Rank()-1, 0, s.channels) })
	}
	for axis := range first {
		if err == nil {
			w, err = derive(w, func(w *core.View) (*core.View, error) { return w.Select(0, l.At[axis]) })
		}
	}
	if err != nil {
		return nil, err
	}
	s.tiles = w
	if s.batch = n >= 0; s.batch {
		s.n = min(v.Dim(n), maxTiles)
	}
	s.height, s.width = v.Dim(y), v.Dim(x)
	for s.cols*s.rows < s.n { // as square as it gets
		if s.cols*s.width <= s.rows*s.height {
			s.cols++
		} else {
			s.rows++
		}
	}
	s.step = max(ceil(s.cols*s.width, l.Width), ceil(s.rows*s.height, l.Height), 1)
	s.h, s.w = ceil(s.height, s.step), ceil(s.width, s.step)
	return s, nil
}

// drawn is how many of an image's channels are drawn, the first of them. The others, which may be many, are not read.
func drawn(channels int) int {
	switch channels {
	case 1, 2:
		return 1
	case 4:
		return 4
	}
	return 3
}

func ceil(a, b int) int { return (a + b - 1) / b }

// derive is a further view in place of one that was derived itself.
func derive(v *core.View, f func(*core.View) (*core.View, error)) (*core.View, error) {
	w, err := f(v)
	_ = v.Close() // derived
	return w, err
}

// tile copies what is drawn of one picture.
func (s *sheet) tile(ctx context.Context, i int) ([]byte, error) {
	w, err := s.tiles.AsReadOnly()
	if err == nil && s.batch {
		w, err = derive(w, func(w *core.View) (*core.View, error) { return w.Select(0, i) })
	}
	for axis := range 2 {
		if err == nil {
			w, err = derive(w, func(w *core.View) (*core.View, error) { return w.Step(axis, s.step) })
		}
	}
	if err != nil {
		return nil, err
	}
	defer w.Close() //nolint:errcheck // derived
	raw := make([]byte, w.NBytes())
	_, err = core.CopyBytes(ctx, raw, w)
	return raw, err
}

// brightness says which numbers are black and white: those of the type, or for fractions 0 and 1 (or 255) if all lie there, and
// otherwise the least and the greatest.
func brightness(d numbers.Type, tiles [][]byte) (low, full float64) {
	if d.DType == core.Uint16 {
		return 0, math.MaxUint16
	}
	low, full = math.Inf(1), math.Inf(-1)
	for _, tile := range tiles {
		for _, x := range numbers.Append(nil, tile, d, len(tile)/d.Size()) {
			if x-x == 0 {
				low, full = min(low, x), max(full, x)
			}
		}
	}
	switch {
	case low > full:
		return 0, 1
	case low >= 0 && full <= 1:
		return 0, 1
	case low >= 0 && full <= 255 && full > 1:
		return 0, 255
	case low == full:
		return low, low + 1
	}
	return low, full
}

// leveled makes bytes of numbers. What is NaN is black.
func leveled(raw []byte, d numbers.Type, low, full float64) []byte {
	xs := numbers.Append(nil, raw, d, len(raw)/d.Size())
	out := make([]byte, len(xs))
	for i, x := range xs {
		if level := (x - low) / (full - low) * 255; level > 0 { // not NaN
			out[i] = byte(min(level+0.5, 255))
		}
	}
	return out
}

// place puts a tile into the sheet.
func (s *sheet) place(points, tile []byte, row, col int) {
	stride := 4 * s.cols * s.w
	for y := range s.h {
		to := points[(row*s.h+y)*stride+4*col*s.w:][:4*s.w]
		from := tile[y*s.w*s.channels:]
		switch s.channels {
		case 1:
			for x := range s.w {
				g := from[x]
				to[4*x], to[4*x+1], to[4*x+2], to[4*x+3] = g, g, g, 255
			}
		case 4:
			copy(to, from)
		default:
			for x := range s.w {
				point := from[3*x : 3*x+3]
				binary.LittleEndian.PutUint32(to[4*x:], uint32(point[0])|uint32(point[1])<<8|uint32(point[2])<<16|0xff<<24)
			}
		}
	}
}
