package render

import (
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// form is how an array is drawn.
type form uint8

const (
	nothing form = iota // no elements, or elements without a known value
	scalar              // one number
	curve               // one axis
	plane               // two axes, one number a point
	colour              // two axes of points of three or four channels: RGB, RGBA
)

// part is what of an array is drawn: a view of its own, to be closed, with exactly the axes that its
// form needs.
type part struct {
	*core.View
	form  form
	index string // what was selected of a larger array, as Python writes it: "[0, :, :]"; else ""
}

// choose decides what of v is drawn: all of it, if it has at most two axes of more than one element or
// a third one that holds the channels of a picture; else the first plane.
func choose(v *core.View) (part, error) {
	keep := make([]int, 0, v.Rank())
	for axis := range v.Rank() {
		if v.Dim(axis) > 1 {
			keep = append(keep, axis)
		}
	}
	p := part{form: formOf(v.Layout(), keep)}
	if p.form == nothing {
		return p, nil
	}
	drawn := map[form]int{scalar: 0, curve: 1, plane: 2, colour: 3}[p.form]
	lost := len(keep) > drawn
	keep = keep[len(keep)-drawn:]

	w, err := same(v)
	index := make([]string, v.Rank())
	for axis := v.Rank() - 1; axis >= 0 && err == nil; axis-- {
		index[axis] = ":"
		if len(keep) == 0 || keep[len(keep)-1] != axis {
			index[axis] = "0"
			w, err = next(w, func(w *core.View) (*core.View, error) { return w.Select(axis, 0) })
			continue
		}
		keep = keep[:len(keep)-1]
	}
	if lost {
		p.index = "[" + strings.Join(index, ", ") + "]"
	}
	p.View = w
	return p, err
}

// formOf decides the form of an array of which only some axes have more than one element.
func formOf(l core.Layout, axes []int) form {
	n := len(axes)
	switch {
	case l.Len() == 0 || !numbers.TypeOf(l).Known():
		return nothing
	case n == 0:
		return scalar
	case n == 1:
		return curve
	case n >= 3 && canHoldColours(numbers.TypeOf(l).DType) && isChannels(l.Dim(axes[n-1])) &&
		min(l.Dim(axes[n-2]), l.Dim(axes[n-3])) > 4:
		return colour
	}
	return plane
}

func isChannels(dim int) bool { return dim == 3 || dim == 4 }

// canHoldColours reports whether pictures are made of such elements: bytes, 16-bit numbers, and
// fractions of one. Whether all fractions are between 0 and 1 is seen later.
func canHoldColours(d core.DType) bool {
	return d == core.Uint8 || d == core.Uint16 || numbers.Floating(d)
}

// same is a further view of the same elements.
func same(v *core.View) (*core.View, error) {
	axes := make([]int, v.Rank())
	for i := range axes {
		axes[i] = i
	}
	return v.Transpose(axes...)
}

// next derives a view and closes the one that it came from.
func next(v *core.View, derive func(*core.View) (*core.View, error)) (*core.View, error) {
	w, err := derive(v)
	if err == nil {
		err = v.Close()
	} else {
		_ = v.Close() // derived itself, so there is nothing to give back
	}
	return w, err
}
