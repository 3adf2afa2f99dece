package watch

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
)

// Point is one look at an array.
type Point struct {
	Time    time.Time     `json:"time"`
	Step    *stats.Number `json:"step"` // after the look; null if no step is watched
	Version uint64        `json:"version"`
	Exact   bool          `json:"exact"`
	NaN     int           `json:"nan"`
	Inf     int           `json:"inf"`
	Zero    stats.Number  `json:"zero"` // share
	Min     stats.Number  `json:"min"`
	Max     stats.Number  `json:"max"`
	Mean    stats.Number  `json:"mean"`
	Std     stats.Number  `json:"std"`
	Norm    stats.Number  `json:"norm"`
}

// Series is what is known of one array.
type Series struct {
	Name   string         `json:"name"`
	Number bool           `json:"number"` // it is a number of Python's own
	DType  core.DType     `json:"-"`
	Type   string         `json:"dtype"` // "" before the first look
	Shape  []int          `json:"shape"`
	NBytes int64          `json:"nbytes"`
	Route  core.Route     `json:"-"`     // of the last look that went well, as Reason
	Reason core.Reason    `json:"-"`     // why the array is copied, or ""
	Last   *stats.Summary `json:"last"`  // nil before the first look
	Error  string         `json:"error"` // of the last look; "": it went well
	Looks  int            `json:"looks"`
	Tries  int            `json:"-"` // looks, and those that failed although the program has something of this name
	Passed bool           `json:"-"` // the array is [Array.Passing], and its name led to nothing at the last look
	// Changed is when the array was last seen to have changed: by its version if it is published, by its figures if all
	// elements are looked at, and else by those of the same few thousand elements.
	Changed time.Time `json:"changed"`
	History []Point   `json:"history"` // the oldest first
	Raised  []string  `json:"raised"`  // alarms whose condition is met
}

// Rate is how fast a figure of the history changes, per second, between the last two looks that have it; NaN if there are
// not two. It is 0 if the array has not changed between them: its figures differ all the same if they are of other samples.
func (s *Series) Rate(figure func(Point) stats.Number) float64 {
	var later *Point
	for i := range slices.Backward(s.History) {
		p := &s.History[i]
		x := float64(figure(*p))
		switch {
		case math.IsNaN(x):
		case later == nil:
			later = p
		case !s.Changed.After(p.Time):
			return 0
		default:
			return (float64(figure(*later)) - x) / later.Time.Sub(p.Time).Seconds()
		}
	}
	return math.NaN()
}

// mark is by what a change of an array is noticed.
type mark struct {
	version                      uint64
	nan, inf, zero, negative     int
	low, high, mean, std, length float64
}

func markOf(s *stats.Summary) mark {
	if s.Version > 0 {
		return mark{version: s.Version}
	}
	number := func(x float64) float64 { // so that NaN is equal to itself
		if math.IsNaN(x) {
			return math.Inf(1)
		}
		return x
	}
	return mark{
		nan: s.NaN, inf: s.PosInf + s.NegInf, zero: s.Zero, negative: s.Negative,
		low: number(s.Min), high: number(s.Max), mean: number(s.Mean), std: number(s.Std), length: float64(s.Len),
	}
}

// pointOf records a look.
func pointOf(s *stats.Summary, now time.Time, step *stats.Number) Point {
	return Point{
		Time: now, Step: step, Version: s.Version, Exact: s.Exact(), NaN: s.NaN, Inf: s.PosInf + s.NegInf,
		Zero: stats.Number(s.Share(s.Zero)), Min: stats.Number(s.Min), Max: stats.Number(s.Max),
		Mean: stats.Number(s.Mean), Std: stats.Number(s.Std), Norm: stats.Number(s.Norm),
	}
}

// said is the text of an error of a look. To refresh is a word for those who call the program from Go.
func said(err error) string {
	e, ok := errors.AsType[*core.Error](err)
	if !ok || e.Op != "refresh" {
		return err.Error()
	}
	look := *e
	look.Op = "look at"
	return strings.Replace(err.Error(), e.Error(), look.Error(), 1)
}
