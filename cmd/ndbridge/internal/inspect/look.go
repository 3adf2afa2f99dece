package inspect

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/stats"
)

// look is what a page shows of an array.
type look struct {
	Name  string `json:"name"`
	Exact bool   `json:"exact"` // look at all elements, however many
	Log   bool   `json:"log"`   // bins of the histogram between powers of two
	Diff  bool   `json:"diff"`  // to what was pinned

	// Y and X are the axes of rows and columns, At the indices of the others; an Auto look leaves them to the server.
	Auto bool  `json:"auto"`
	Y    int   `json:"y"`
	X    int   `json:"x"`
	At   []int `json:"at"`
	// The part of the plane, from and up to; all of it if they are equal.
	Rows    [2]int `json:"rows"`
	Columns [2]int `json:"columns"`
	Of      string `json:"of"` // what a cell shows of its elements: "mean", "min", "max"

	Image  string `json:"image"` // "": a heat map; else the order of axes: "HW", "HWC", "CHW", "NHWC", "NCHW", "NHW"
	Width  int    `json:"width"` // of the picture, in cells or points, at most
	Height int    `json:"height"`
	Line   int    `json:"line"` // the axis of the line

	Spectrum bool `json:"spectrum"` // of the line, in its place
}

const (
	maxPoints = 2048 // along an axis of a picture
	maxAxes   = 64
)

// check refuses what no page of ours asks for.
func (l look) check() error {
	switch {
	case l.Name == "":
		return errors.New("no name")
	case len(l.At) > maxAxes:
		return fmt.Errorf("%d axes", len(l.At))
	case l.Width < 1 || l.Width > maxPoints || l.Height < 1 || l.Height > maxPoints:
		return fmt.Errorf("a picture of %d x %d", l.Width, l.Height)
	}
	return nil
}

// key is the same for looks that show the same.
func (l look) key() string { return string(jsonMessage(l).bytes) }

// fit makes the look one of an array of this layout: axes and indices that it does not have become others.
func (l look) fit(of core.Layout) look {
	rank := of.Rank()
	auto := stats.PlaneOf(of)
	valid := func(axis int) bool { return axis >= 0 && axis < rank }
	if l.Auto || l.Y == l.X || l.Y != stats.None && !valid(l.Y) || l.X != stats.None && !valid(l.X) {
		l.Y, l.X = auto.Y, auto.X
	}
	at := make([]int, rank)
	for i := range min(rank, len(l.At)) {
		at[i] = min(max(l.At[i], 0), max(of.Dim(i)-1, 0))
	}
	l.At = at
	if !valid(l.Line) {
		l.Line = max(l.X, l.Y, 0)
	}
	l.Rows, l.Columns = part(l.Rows, of, l.Y), part(l.Columns, of, l.X)
	return l
}

// part gives the part of an axis that is shown.
func part(asked [2]int, of core.Layout, axis int) [2]int {
	n := 1
	if axis != stats.None {
		n = of.Dim(axis)
	}
	from := min(max(asked[0], 0), max(n-1, 0))
	to := min(max(asked[1], 0), n)
	if to <= from {
		return [2]int{0, n}
	}
	return [2]int{from, to}
}

// partsOf takes a name apart, so that what belongs together can stand together.
func partsOf(name string, published bool) []string {
	path, err := names.Parse(name)
	if err != nil || published && len(path.Steps) == 0 {
		return []string{name}
	}
	var parts []string
	if f := path.Of.String(); path.Of != (names.Function{}) {
		parts = append(parts, f)
	}
	parts = append(parts, path.Root)
	for _, step := range path.Steps {
		parts = append(parts, step.String())
	}
	return parts
}

func dtypeOf(l core.Layout) string {
	if l.Tag() != "" {
		return l.Tag()
	}
	return l.DType().String()
}
