package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"runtime"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/stats"
)

const (
	// perCell bounds how many elements of a cell are looked at, far fewer if several arrays are shown, down to roughly, which does in a picture
	// that comes before that for which somebody waits.
	perCell = 256
	roughly = 1
	// roughWorkers is how many cores draw that: each of its elements is waited for, since no two lie together.
	roughWorkers = 4
	// maxTexts is how many elements are shown as numbers at once.
	maxTexts = 1024
	// tries is how often a picture that may be torn is read again before it is shown as what it is.
	tries = 20
)

// picture is what stands before the cells or points of a picture.
type picture struct {
	Topic   string       `json:"topic"` // "picture"
	Name    string       `json:"name"`
	Kind    string       `json:"kind"` // "heat" or "image"
	Version uint64       `json:"version"`
	Torn    bool         `json:"torn"`
	Y       int          `json:"y"`
	X       int          `json:"x"`
	At      []int        `json:"at"`
	Rows    [2]int       `json:"rows"`    // of the array
	Columns [2]int       `json:"columns"` // of the array
	Width   int          `json:"width"`
	Height  int          `json:"height"`
	Low     stats.Number `json:"low"` // of what is drawn
	High    stats.Number `json:"high"`
	Texts   []string     `json:"texts,omitempty"` // of the elements, if a cell has one
	Sheet   [2]int       `json:"sheet"`           // of an image: rows and columns of a contact sheet
	Tiles   int          `json:"tiles"`           // how many pictures it has: the last places may be empty
	Step    int          `json:"step"`            // of an image: every which point is drawn
	Exact   bool         `json:"exact"`
}

// bytesWith puts a header before what follows it.
func bytesWith(header any, payload []byte) message {
	m, to := roomBehind(header, len(payload))
	copy(to, payload)
	return m
}

// roomBehind makes a message of a header and as many bytes, which are to be written: the length of the header, in four bytes, it, and spaces
// up to a multiple of four stand before them.
func roomBehind(header any, n int) (m message, payload []byte) {
	text := jsonMessage(header).bytes
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&3)...)
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(text)+n), uint32(len(text))) //nolint:gosec // a few bytes
	out = append(out, text...)
	return message{bytes: out[:cap(out)], binary: true}, out[len(out):cap(out)]
}

// pictures reads what each sight shows of the array. It reports false if a newer version came meanwhile, which is
// to be read next.
func (w *reading) pictures(ctx context.Context, sights []*sight) bool {
	for _, s := range sights {
		if !w.wanted(s) {
			continue
		}
		m, err := w.draw(ctx, s.look, false)
		if err != nil {
			if ctx.Err() != nil {
				return false
			}
			w.tell(s, aboutPicture, bytesWith(struct {
				picture

				Error string `json:"error"`
			}{picture{Topic: "picture", Name: w.name}, err.Error()}, nil))
			continue
		}
		whole := w.check(ctx)
		if !whole && w.torn < tries && w.ring.buffers != 1 {
			w.torn++
			return false
		}
		w.torn = 0
		if !whole && w.view.Version() > 0 {
			if m, err = w.draw(ctx, s.look, true); err != nil {
				return false
			}
		}
		w.coarse = w.coarse || w.rough && m.sparse
		w.tell(s, aboutPicture, m)
	}
	w.shown = w.view.Version()
	return true
}

// check reports whether what was read of the view just now is whole. If there is a newer version, it becomes the view.
func (w *reading) check(ctx context.Context) bool {
	version := w.view.Version()
	if version == 0 {
		return true // nobody can tell; the page says so
	}
	v, _, err := w.source.Latest(ctx, w.view)
	w.view = v
	if err != nil {
		return w.ring.buffers != 1
	}
	w.ring.saw(v)
	return w.ring.whole(version, v.Version())
}

// draw reads what a look shows.
func (w *reading) draw(ctx context.Context, l look, torn bool) (message, error) {
	v := w.view
	l = l.fit(v.Layout())
	p := picture{
		Topic: "picture", Name: w.name, Kind: "heat", Version: v.Version(), Torn: torn || stats.Torn(v),
		Y: l.Y, X: l.X, At: l.At, Rows: l.Rows, Columns: l.Columns, Exact: true,
	}
	if v.Len() == 0 {
		p.Low, p.High = stats.Number(math.NaN()), stats.Number(math.NaN())
		return bytesWith(p, nil), nil // a picture of nothing
	}
	if l.Image != "" {
		return drawImage(ctx, v, l, p)
	}
	base := w.pinned
	if !l.Diff || base != nil && !sameShape(base, v) {
		base = nil
	}
	share := w.pace.Limit() / w.hub.pace.Limit()
	o := stats.CellOptions{PerCell: max(int(perCell*share*share), roughly), Workers: 1}
	switch {
	case w.rough:
		o = stats.CellOptions{PerCell: roughly, Workers: min(roughWorkers, runtime.GOMAXPROCS(0))}
	case l.Exact:
		o = stats.CellOptions{}
	}
	return drawHeat(ctx, v, base, l, p, o)
}

func sameShape(a, b *core.View) bool { return render.Shape(a.Layout()) == render.Shape(b.Layout()) }

// drawHeat divides a part of a plane into cells. Behind the header stand a float64 for each cell, and a byte whose bits say that the cell has
// NaN (1) or infinities (2). A float32 could not tell times, or large whole numbers, apart.
func drawHeat(ctx context.Context, v, base *core.View, l look, p picture, o stats.CellOptions) (message, error) {
	part, err := partOf(v, l)
	if err != nil {
		return message{}, err
	}
	defer part.Close() //nolint:errcheck // derived
	if base != nil {
		if o.Base, err = partOf(base, l); err != nil {
			return message{}, err
		}
		defer o.Base.Close() //nolint:errcheck // derived
	}
	c, err := stats.Image(ctx, part, stats.Plane{Y: l.Y, X: l.X, At: l.At}, l.Width, l.Height, &o)
	if err != nil {
		return message{}, err
	}
	values := map[string][]float64{"min": c.Min, "max": c.Max}[l.Of]
	if values == nil {
		values = c.Mean
	}
	payload := make([]byte, 0, 9*len(values))
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range values {
		if !math.IsNaN(x) {
			low, high = min(low, x), max(high, x)
		}
		payload = binary.LittleEndian.AppendUint64(payload, math.Float64bits(x))
	}
	for i := range values {
		payload = append(payload, flag(c.NaN[i], 1)|flag(c.Inf[i], 2))
	}
	p.Width, p.Height, p.Low, p.High, p.Exact = c.Width, c.Height, stats.Number(low), stats.Number(high), c.Exact()
	if c.Width == c.Columns && c.Height == c.Rows && c.Width*c.Height <= maxTexts && base == nil {
		if p.Texts, err = texts(ctx, part, l); err != nil {
			return message{}, err
		}
	}
	m := bytesWith(p, payload)
	m.sparse = !p.Exact
	return m, nil
}

func flag(n int, bit byte) byte {
	if n > 0 {
		return bit
	}
	return 0
}

// partOf is the part of the rows and columns that is shown, with all other axes.
func partOf(v *core.View, l look) (*core.View, error) {
	w, err := v.AsReadOnly()
	for _, cut := range []struct {
		axis int
		part [2]int
	}{{l.Y, l.Rows}, {l.X, l.Columns}} {
		if err != nil || cut.axis == stats.None || v.Dim(cut.axis) == 0 {
			continue
		}
		next, failed := w.Sub(cut.axis, cut.part[0], cut.part[1])
		_ = w.Close() // derived
		w, err = next, failed
	}
	return w, err
}

// texts gives the elements of a part as numbers, row by row.
func texts(ctx context.Context, part *core.View, l look) ([]string, error) {
	plane, err := planeOf(part, l)
	if err != nil {
		return nil, err
	}
	defer plane.Close() //nolint:errcheck // derived
	return render.Elements(ctx, plane, render.ForPeople)
}

// planeOf selects the rows and columns of a part, in this order.
func planeOf(part *core.View, l look) (*core.View, error) {
	var perm []int
	for _, axis := range []int{l.Y, l.X} {
		if axis != stats.None {
			perm = append(perm, axis)
		}
	}
	kept := len(perm)
	for axis := range part.Rank() {
		if axis != l.Y && axis != l.X {
			perm = append(perm, axis)
		}
	}
	w, err := part.Transpose(perm...)
	for i := part.Rank() - 1; i >= kept && err == nil; i-- {
		next, failed := w.Select(i, l.At[perm[i]])
		_ = w.Close() // derived
		w, err = next, failed
	}
	return w, err
}
