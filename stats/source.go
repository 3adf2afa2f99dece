package stats

import (
	"cmp"
	"context"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// source is an array as a sequence of n numbers. Its methods are safe for concurrent use.
type source struct {
	n       int // elements in the sequence
	repeats int // how often each counts
	sampled bool
	view    *core.View // whose memory is touched; nil if raw was copied
	raw     []byte
	from    walker
	base    *source         // to subtract; nil: nothing
	halves  *numbers.Halves // by which elements are subtracted; nil: they are numbers of float64
	gpu     summer          // has a GPU sum up what is in its memory; nil: it is read here
}

// summer sums up the elements of a source that a plan says, and counts them into bins if count is set.
type summer interface {
	sum(ctx context.Context, p *plan, src *source, count bool, edges []float64) (moments, *counter, error)
	// release ends the use of the summer.
	release()
}

// axis is one axis of a walker.
type axis struct{ dim, stride int }

// walker says where the elements of a sequence lie: those of an array of some axes, the last of which changes fastest.
// Strides and first are in the units of numbers.Reader.
type walker struct {
	first int
	axes  []axis
	read  numbers.Reader

	single bool // float32
}

// newSource takes v in the order of memory, or in row-major order. What g cannot sum up where it is, and the CPU cannot read, is
// copied.
func newSource(ctx context.Context, v *core.View, g summer, limit int, memoryOrder bool) (*source, error) {
	if !numbers.TypeOf(v.Layout()).Known() {
		return nil, errNoNumber(v)
	}
	s := &source{n: v.Len(), repeats: 1, view: v, gpu: g}
	layout := v.Layout()
	if g == nil && !v.Device().HostReadable() && v.Len() > 0 {
		var err error
		if layout, err = s.fetch(ctx, v, limit); err != nil {
			return nil, err
		}
	}
	s.from = walkerOf(layout)
	if memoryOrder {
		s.repeats = s.from.sort()
		s.n /= s.repeats
	}
	return s, nil
}

// walkerOf describes the elements of l in row-major order.
func walkerOf(l core.Layout) walker {
	w := walker{first: l.Offset(), read: numbers.TypeOf(l).Reader(), single: l.DType() == core.Float32, axes: make([]axis, l.Rank())}
	stride := numbers.Unit(l.DType())
	for i := range w.axes {
		w.axes[i] = axis{l.Dim(i), l.Stride(i)}
	}
	if l.DType().Packed() { // always dense, with places in bits
		w.first *= 8
		for i, a := range slices.Backward(w.axes) {
			w.axes[i].stride = stride
			stride *= a.dim
		}
	}
	return w
}

// sort puts the elements in the order of memory, forwards, and leaves out repeated ones, whose number it gives.
func (w *walker) sort() (repeats int) {
	repeats = 1
	w.axes = slices.DeleteFunc(w.axes, func(a axis) bool {
		if a.stride == 0 && a.dim > 0 {
			repeats *= a.dim
			return true
		}
		return false
	})
	for i, a := range w.axes {
		if a.stride < 0 {
			w.first += a.stride * (a.dim - 1)
			w.axes[i].stride = -a.stride
		}
	}
	slices.SortStableFunc(w.axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) })
	return repeats
}

// coalesce describes the same sequence with as few axes as possible, and at least one.
func (w *walker) coalesce() {
	axes := make([]axis, 0, len(w.axes)+1)
	for _, a := range w.axes {
		switch last := len(axes) - 1; {
		case a.dim == 1:
		case last >= 0 && axes[last].stride == a.stride*a.dim:
			axes[last] = axis{axes[last].dim * a.dim, a.stride}
		default:
			axes = append(axes, a)
		}
	}
	if len(axes) == 0 {
		axes = append(axes, axis{1, 0})
	}
	w.axes = axes
}

func (s *source) coalesce() {
	s.from.coalesce()
	if s.base != nil {
		s.base.coalesce()
	}
}

// fill reads the elements at..at+len(dst) of the sequence.
func (w *walker) fill(dst []float64, raw []byte, at int) {
	last := len(w.axes) - 1
	row := w.axes[last]
	for len(dst) > 0 {
		place, rest := w.first, at/row.dim
		for i := last - 1; i >= 0; i-- {
			place += rest % w.axes[i].dim * w.axes[i].stride
			rest /= w.axes[i].dim
		}
		column := at % row.dim
		n := min(row.dim-column, len(dst))
		place += column * row.stride
		if wide := n / step * step; w.single && row.stride == 4 && wide > 0 && fast() {
			_ = raw[place : place+4*wide]
			widenAVX2(&dst[0], &raw[place], wide)
			w.read(dst[wide:n], raw, place+4*wide, 4)
		} else {
			w.read(dst[:n], raw, place, row.stride)
		}
		dst = dst[n:]
		at += n
	}
}

// fetch copies the elements of v, or every k-th along its longest axis if there are more than limit. A limit of 0 is
// none.
func (s *source) fetch(ctx context.Context, v *core.View, limit int) (core.Layout, error) {
	thin := v
	if k := (v.Len() + limit - 1) / max(limit, 1); limit > 0 && k > 1 && !v.DType().Packed() {
		longest := 0
		for i := range v.Rank() {
			if v.Dim(i) > v.Dim(longest) {
				longest = i
			}
		}
		w, err := v.Step(longest, min(k, v.Dim(longest)))
		if err != nil {
			return core.Layout{}, err
		}
		defer w.Close() //nolint:errcheck // derived, so there is nothing to give back
		thin, s.sampled = w, true
	}
	s.view, s.raw, s.n = nil, make([]byte, thin.NBytes()), thin.Len()
	if _, err := core.CopyBytes(ctx, s.raw, thin); err != nil {
		return core.Layout{}, err
	}
	return core.NewLayout(core.LayoutSpec{DType: v.DType(), Tag: v.Tag(), Shape: thin.Shape()})
}

// reader reads elements of a source while its memory may be touched.
type reader struct {
	fill  func(dst []float64, at int)
	half  func(dst []float64, at, i int) // reads one half of each, if elements have some
	dense func(at, n int) []byte         // the bytes of n elements, if they are float32 that follow each other; else nil
}

// touch calls f with what reads elements of the sequence. scratch has room for as many as are read at once, if there is a
// base.
func (s *source) touch(ctx context.Context, scratch []float64, f func(reader) error) error {
	if s.view == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.touched(ctx, s.raw, scratch, f)
	}
	return s.view.Touch(ctx, func(memory []byte) error { return s.touched(ctx, memory, scratch, f) })
}

func (s *source) touched(ctx context.Context, memory []byte, scratch []float64, f func(reader) error) error {
	own := reader{
		fill: func(dst []float64, at int) { s.from.fill(dst, memory, at) },
		half: func(dst []float64, at, i int) {
			w := s.from
			w.first, w.read = w.first+s.halves.At[i], s.halves.Read[i]
			w.fill(dst, memory, at)
		},
		dense: func(at, n int) []byte {
			if !s.from.dense() {
				return nil
			}
			return memory[s.from.first+4*at:][:4*n]
		},
	}
	if s.base == nil {
		return f(own)
	}
	return s.base.touch(ctx, nil, func(base reader) error {
		less := func(dst []float64) {
			for i, x := range scratch[:len(dst)] {
				dst[i] -= x
			}
		}
		difference := reader{
			fill: func(dst []float64, at int) {
				own.fill(dst, at)
				base.fill(scratch[:len(dst)], at)
				less(dst)
			},
			dense: func(int, int) []byte { return nil },
		}
		if s.halves != nil {
			room := make([]float64, len(scratch))
			difference.fill = func(dst []float64, at int) {
				second := room[:len(dst)]
				for i, half := range [][]float64{dst, second} {
					own.half(half, at, i)
					base.half(scratch[:len(dst)], at, i)
					less(half)
				}
				for i, x := range second {
					dst[i] = s.halves.Join(dst[i], x)
				}
			}
		}
		return f(difference)
	})
}
