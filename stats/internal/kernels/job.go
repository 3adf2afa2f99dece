//go:build cuda

package kernels

import (
	"encoding/binary"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

// MaxAxes is how many axes a [Walker] has at most.
const MaxAxes = 32

// MaxBins is how many bins a histogram has at most.
const MaxBins = 1 << 16

// Axis is one axis of a [Walker].
type Axis struct{ Dim, Stride int }

// Walker says where the elements of a sequence lie: those of an array of some axes, at least one, the last of which
// changes fastest. Strides and First are in bytes, or in bits if elements share bytes. First is relative to the memory.
type Walker struct {
	View  *core.View
	First int
	Axes  []Axis
}

// Job is what is to be summed up.
type Job struct {
	From Walker
	Base *Walker // is subtracted, element by element; nil: nothing
	// Total is how many elements the sequence has. If Run is not 0, a run of so many neighbours of each of Chunks equal parts
	// is read, by the rule of stats.Options.Sample.
	Total, Chunks, Run int
	Seed               uint64
	// Scale is what elements are multiplied by before they are summed up, for the sake of very large and very small ones.
	Scale float64

	// Patterns asks for nothing but how many elements there are of each pattern: they have a byte, or less, and there is no Base.
	Patterns bool

	Count bool // into bins: between powers of two if there are no Edges
	Edges []float64
	// BinScale is the number of bins by their range, and Wrong how far a place among the bins may be off by rounding.
	BinScale, Wrong float64
}

// Part is what one block of the kernel has seen. Mean and Squares, the sum of the squared differences to it, are those of the
// scaled elements.
type Part struct {
	NaN, PosInf, NegInf, Zero, Negative, Finite int
	Low, High, Mean, Squares                    float64
}

// Counts is a histogram: logarithmic bins are by the first 12 bits of the elements as float64. Of patterns, there are 256 bins.
type Counts struct {
	Bins         []int
	Below, Above int
}

// format is how the bytes of an element make a number, as in kernels.cu.
type format uint32

const (
	small format = iota
	packed
	uint16s
	int16s
	float16s
	bfloat16s
	uint32s
	int32s
	float32s
	uint64s
	int64s
	float64s
	complex32s
	complex64s
	complex128s
)

// formatOf knows all types that numbers.Known does.
func formatOf(d core.DType) format {
	switch d {
	case core.Uint16:
		return uint16s
	case core.Int16:
		return int16s
	case core.Float16:
		return float16s
	case core.BFloat16:
		return bfloat16s
	case core.Uint32:
		return uint32s
	case core.Int32:
		return int32s
	case core.Float32:
		return float32s
	case core.Uint64:
		return uint64s
	case core.Int64:
		return int64s
	case core.Float64:
		return float64s
	case core.Complex64:
		return complex64s
	case core.Complex128:
		return complex128s
	default:
		switch {
		case d.Packed():
			return packed
		case d.Size() == 1:
			return small
		default: // complex numbers of two halves
			return complex32s
		}
	}
}

const (
	logBins = 1 << 12
	// sharedCounters is how many counters each block has in its fast memory.
	sharedCounters = 1 << 12
	// lanes is how many threads run at the same time: with as many copies of each counter none waits for another.
	lanes = 32

	walkerSize = 8 + 6*4 + 2*8*MaxAxes + 4*256
	jobSize    = 5*8 + 5*8 + 4*4 + 3*8 + 2*walkerSize
	partSize   = 10 * 8
)

func (j *Job) bins() int {
	switch {
	case j.Patterns:
		return 256
	case !j.Count:
		return 0
	case j.Edges == nil:
		return logBins
	default:
		return len(j.Edges) - 1
	}
}

// len is how many elements are read.
func (j *Job) len() int {
	if j.Run > 0 {
		return j.Chunks * j.Run
	}
	return j.Total
}

// copies of the counters in a block's fast memory; 0 if that has no room.
func (j *Job) copies() int {
	bins := j.bins()
	if bins == 0 || bins > sharedCounters {
		return 0
	}
	n := lanes
	for bins*n > sharedCounters {
		n /= 2
	}
	return n
}

// head, counters and results are how many bytes a job has with its edges, its counters, and its parts.
func (a *asked) head() int     { return jobSize + 8*len(a.job.Edges) }
func (a *asked) counters() int { return 8 * (a.job.bins() + 2) }

func (a *asked) results() int {
	if a.job.Patterns {
		return 0
	}
	return a.blocks * partSize
}

func (a *asked) size() int { return a.head() + a.counters() + a.results() }

// write writes the job as kernels.cu reads it, and behind it the edges.
func (a *asked) write(memory []byte) {
	j, b := a.job, memory[a.at.job:a.at.job]
	order := binary.NativeEndian
	words := func(words ...int) {
		for _, w := range words {
			b = order.AppendUint64(b, uint64(w)) //nolint:gosec // the bits of negative ones
		}
	}
	doubles := func(xs ...float64) {
		for _, x := range xs {
			b = order.AppendUint64(b, math.Float64bits(x))
		}
	}
	low, high := 0.0, 0.0
	how := uint32(0)
	if n := len(j.Edges); n > 0 {
		low, high = j.Edges[0], j.Edges[n-1]
	} else {
		how = 1
	}
	words(j.len(), j.Total, j.Chunks, j.Run)
	b = order.AppendUint64(b, j.Seed)
	doubles(j.Scale, low, high, j.BinScale, j.Wrong)
	base := Walker{View: j.From.View, Axes: []Axis{{1, 0}}}
	subtract := uint32(0)
	if j.Base != nil {
		base, subtract = *j.Base, 1
	}
	for _, w := range []uint32{uint32(j.bins()), how, uint32(j.copies()), subtract} { //nolint:gosec // they are small
		b = order.AppendUint32(b, w)
	}
	words(jobSize, a.at.counts-a.at.job, a.at.parts-a.at.job)
	b = base.append(j.From.append(b))
	doubles(j.Edges...)
}

// append writes the walker as kernels.cu reads it: relative to the element with index [0, ..., 0].
func (w *Walker) append(b []byte) []byte {
	order := binary.NativeEndian
	l := w.View.Layout()
	t := numbers.TypeOf(l)
	f := formatOf(t.DType)
	size, origin := t.Size(), l.Offset()
	if f == packed {
		size, origin = t.Bits(), 8*origin
	}
	first := w.First - origin
	b = order.AppendUint64(b, uint64(first)) //nolint:gosec // the bits of negative ones
	plain := w.plain(t, f, first)
	dense := plain && len(w.Axes) == 1 && (w.Axes[0].Stride == size || w.Axes[0].Dim == 1)
	for _, x := range []int{int(f), size, len(w.Axes), t.Reversed(), one(plain), one(dense)} {
		b = order.AppendUint32(b, uint32(x)) //nolint:gosec // they are small
	}
	for i := range MaxAxes {
		var dim int
		if i < len(w.Axes) {
			dim = w.Axes[i].Dim
		}
		b = order.AppendUint64(b, uint64(dim)) //nolint:gosec // no array has negative ones
	}
	for i := range MaxAxes {
		var stride int
		if i < len(w.Axes) {
			stride = w.Axes[i].Stride
		}
		b = order.AppendUint64(b, uint64(stride)) //nolint:gosec // the bits of negative ones
	}
	var values [256]float64
	if f == small || f == packed {
		read := t.Reader()
		for i := range 1 << t.Bits() {
			read(values[i:i+1], []byte{byte(i)}, 0, 0)
		}
	}
	for _, x := range values {
		b = order.AppendUint32(b, math.Float32bits(float32(x))) // no type of so few bits has more digits
	}
	return b
}

// plain reports whether the GPU can load all elements at once: where their address is a multiple of their size, and that of halves
// of complex numbers of 16 bytes.
func (w *Walker) plain(t numbers.Type, f format, first int) bool {
	if f == packed || t.Reversed() > 0 {
		return false
	}
	size := min(t.Size(), 8)
	if (int(w.View.Addr())+first)%size != 0 { //nolint:gosec // the last bits are what counts
		return false
	}
	for _, a := range w.Axes {
		if a.Stride%size != 0 {
			return false
		}
	}
	return true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// read reads what the kernel has written.
func (a *asked) read(memory []byte) ([]Part, *Counts) {
	b := memory[a.at.counts:]
	next := func() uint64 {
		x := binary.NativeEndian.Uint64(b)
		b = b[8:]
		return x
	}
	count := func() int { return int(next()) } //nolint:gosec // of elements
	number := func() float64 { return math.Float64frombits(next()) }
	c := &Counts{Bins: make([]int, a.job.bins())}
	c.Below = count()
	for i := range c.Bins {
		c.Bins[i] = count()
	}
	c.Above = count()
	if a.job.Patterns {
		return nil, c
	}
	b = memory[a.at.parts:]
	parts := make([]Part, a.blocks)
	for i := range parts {
		parts[i] = Part{count(), count(), count(), count(), count(), count(), number(), number(), number(), number()}
	}
	return parts, c
}
