package stats

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// Options says how an array is summed up. The zero value, as a nil *Options, means all elements, without a histogram.
type Options struct {
	// Sample is how many elements to look at, about; 0 means all. They are taken in runs of neighbours, one
	// at a scattered place in each of as many equal parts of the array as there are runs. So a sample takes
	// as long whatever the size of the array. See [Summary.MeanError] and [Summary.Missed] for what it is worth.
	Sample int
	// Run is how many neighbours a run has, about; 0 means [SampleRun]. In runs of a page an element takes a tenth of the time, but where neighbours are
	// alike, a sample is worth as much as it has runs.
	Run int
	// Seed chooses the places. Equal seeds choose equal places in arrays of equal layouts. The next seed takes the next
	// run of each part: successive looks read all elements in turn, in [Summary.Sweep] looks.
	Seed uint64
	// Bins is how many bins the histogram has; 0 means no histogram, and Auto a number that suits a picture.
	Bins int
	// Low and High are the range of a histogram with bins of equal width. If they are equal, the range is that of
	// a sample of the array, and what lies outside is counted in Below and Above. It does not depend on Seed if all elements are looked at.
	// Equal bins reach to a quarter of what a float64 can be; if the range is wider, the first and the last bin have all that is beyond.
	Low, High float64
	// Log asks for bins between powers of two, which need no range: Bins, Low and High do not count then, except that
	// Bins must not be 0.
	Log bool
	// Base is subtracted from the array, element by element, before anything is measured: an earlier version of it
	// ([Keep]). Its shape must be that of the array (ErrLayout). Of complex numbers and whole ones of 64 bits what is measured is the
	// difference of the elements themselves, but on a GPU that of their magnitudes, or of the nearest float64s.
	Base *core.View
	// Workers is how many goroutines read; 0 means GOMAXPROCS.
	Workers int
	// NoCopy asks for an error that wraps ErrUnsupported where a GPU's elements would be copied, since the GPU cannot sum them up.
	NoCopy bool
}

// Auto is a number of bins that suits a picture of the histogram.
const Auto = -1

// SampleRun is how many neighbours a run of a sample has, unless [Options] say otherwise: those that a line of the cache holds of float32.
const SampleRun = 16

// Summary is what an array's elements are like. All figures but the counts of NaN and infinities are those of the finite
// elements; they are NaN if there is none, except Norm, which is 0.
type Summary struct {
	Len     int  // elements of the array
	Seen    int  // elements looked at; those that repeat others count
	Runs    int  // places of the sample; 0 if all elements were looked at
	Sweep   int  // looks with successive seeds that read all elements; 0 if that is not known
	Torn    bool // the program may have written meanwhile: the view is live and was not published
	OnGPU   bool // the GPU that the array lies on has summed it up there; else a GPU's elements were copied
	Version uint64
	Taken   time.Duration // how long it took

	NaN, PosInf, NegInf      int // of those looked at
	Zero, Negative, Positive int // of those looked at, finite ones only

	Min, Max float64
	Mean     float64
	Std      float64 // the population's: divided by the number of elements, not by one less
	Norm     float64 // L2: the root of the sum of squares. Of a sample, scaled to the array's length

	Histogram Histogram
}

// Exact reports whether all elements were looked at.
func (s *Summary) Exact() bool { return s.Runs == 0 }

// Finite returns how many of the elements looked at are finite.
func (s *Summary) Finite() int { return s.Zero + s.Negative + s.Positive }

// Share gives a count as a share of the elements looked at, between 0 and 1. It is 0 if there are none.
func (s *Summary) Share(count int) float64 {
	if s.Seen == 0 {
		return 0
	}
	return float64(count) / float64(s.Seen)
}

// MeanError bounds the standard error of a sample's Mean, and with a Std of sqrt(p(1-p)) that of a share p: Std divided by the
// root of Runs. That holds even if all neighbours are equal. If they have nothing to do with each other, it is
// divided by the root of Seen instead. It is 0 if the figures are exact.
func (s *Summary) MeanError() float64 {
	if s.Exact() || s.Finite() == 0 {
		return 0
	}
	return s.Std / math.Sqrt(float64(s.Runs))
}

// Missed bounds the probability that a sample has none of n elements that are special, wherever they are: (1 - share)^Runs, where
// share is n of the array's elements. It is 0 if the figures are exact.
func (s *Summary) Missed(n int) float64 {
	if s.Exact() || s.Len == 0 {
		return 0
	}
	return math.Pow(1-min(float64(n)/float64(s.Len), 1), float64(s.Runs))
}

// Of sums up the elements of v. A nil opts means the zero Options.
//
// The error wraps ErrDType if elements have no value that is a number (types of several lanes, and opaque ones but for
// numbers in a foreign order of bytes, as NumPy's ">f4"; [core.View.As] says what else they are), ErrConfig
// if the options make no sense, ErrClosed, ErrPointer or ErrUnavailable as those of [core.Copy], or it is that of ctx.
func Of(ctx context.Context, v *core.View, opts *Options) (*Summary, error) {
	if opts == nil {
		opts = new(Options)
	}
	begun := time.Now()
	if err := opts.check(v); err != nil {
		return nil, err
	}
	s, err := measure(ctx, v, opts)
	if err != nil {
		return nil, err
	}
	s.Torn, s.Version = Torn(v), v.Version()
	s.Taken = time.Since(begun)
	return s, nil
}

// Torn reports whether the program may write to the memory of v while it is read: v is live memory, and no version that
// the program has published. What was published is whole as long as the program keeps to what package core says of
// [core.View.Version].
func Torn(v *core.View) bool { return !v.Copied() && v.Version() == 0 }

func (o *Options) check(v *core.View) error {
	wrong := func(format string, args ...any) error {
		return &core.Error{Op: "stats", Object: v.Name(), Kind: core.ErrConfig, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case o.Sample < 0:
		return wrong("a sample of %d elements", o.Sample)
	case o.Run < 0:
		return wrong("runs of %d elements", o.Run)
	case o.Bins < Auto || o.Bins > maxBins:
		return wrong("%d bins; expected 0 to %d, or Auto", o.Bins, maxBins)
	case !(o.High >= o.Low) || math.IsInf(o.High-o.Low, 0):
		return wrong("a histogram from %v to %v", o.Low, o.High)
	case o.Low < o.High && o.High-o.Low < narrowest(o.Low, o.High, max(o.Bins, autoBins)):
		return wrong("the range from %v to %v cannot be divided into %d bins", o.Low, o.High, max(o.Bins, autoBins))
	case o.Workers < 0:
		return wrong("%d workers", o.Workers)
	}
	return nil
}
