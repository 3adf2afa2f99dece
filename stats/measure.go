package stats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
)

const (
	// chunkLen is how many elements a worker takes at once, at least.
	chunkLen = 1 << 16
	// maxChunks bounds how many there are, whatever the array.
	maxChunks = 1 << 12
	// rangeSample is how many elements the range of a histogram is taken from.
	rangeSample = 1 << 14
)

func errNoNumber(v *core.View) error {
	remedy := "look at an array of numbers that the program makes of it, such as one of float64"
	if strings.HasPrefix(v.Tag(), "[(") || strings.HasPrefix(v.Tag(), "(") { // NumPy's structures
		remedy = fmt.Sprintf(`name one of the fields, as in %s["field"]`, v.Name())
	}
	return &core.Error{
		Op: "stats", Object: v.Name(), Kind: core.ErrDType, Err: fmt.Errorf("an element of %v is not one number", v.Layout()), Remedy: remedy,
	}
}

// measure does the work of Of: on the GPU whose memory v lies in, if the host can have that do it.
func measure(ctx context.Context, v *core.View, o *Options) (*Summary, error) {
	g, err := onGPU(ctx, v, o.Base)
	if err != nil {
		return nil, err
	}
	if g != nil {
		defer g.release()
		s, err := measureBy(ctx, g, v, o)
		if !errors.Is(err, core.ErrDevice) { // it is memory that the driver does not know
			return s, err
		}
	}
	for _, w := range []*core.View{v, o.Base} {
		if o.NoCopy && w != nil && w.Len() > 0 && !w.Device().HostReadable() {
			return nil, errCopy(w)
		}
	}
	return measureBy(ctx, nil, v, o)
}

func errCopy(v *core.View) error {
	return &core.Error{
		Op: "stats", Object: v.Name(), Kind: core.ErrUnsupported, Err: fmt.Errorf("%v does not sum it up where it is", v.Device()),
		Remedy: "without Options.NoCopy, a copy is summed up",
	}
}

// measureBy has g do the work if it is not nil.
func measureBy(ctx context.Context, g summer, v *core.View, o *Options) (*Summary, error) {
	limit := o.Sample
	if limit >= v.Len() {
		limit = 0
	}
	src, err := newSource(ctx, v, g, limit, o.Base == nil)
	if err == nil && o.Base != nil {
		err = src.subtract(ctx, v, o.Base, limit)
	}
	if err != nil {
		return nil, err
	}
	src.coalesce()
	s := &Summary{Len: v.Len(), Sweep: 1, OnGPU: g != nil}
	p := planOf(src, limit, o)
	edges, err := histogramEdges(ctx, src, o)
	if err != nil {
		return nil, err
	}
	m, c, err := p.run(ctx, src, o.Workers, o.Bins != 0, edges)
	if err != nil {
		return nil, err
	}
	switch {
	case src.sampled:
		s.Runs, s.Sweep = src.n, 0
	case p.runLen > 0:
		s.Runs, s.Sweep = p.chunks, p.sweep()
	}
	m.repeated(src.repeats)
	s.take(m)
	if c != nil && s.Finite() > 0 {
		s.Histogram = c.histogram()
		s.Histogram.Seen = s.Seen
		if !o.Log && o.Low == o.High {
			s.Histogram.stretch()
		}
	}
	return s, nil
}

// subtract makes the source that of the difference to base.
func (s *source) subtract(ctx context.Context, v, base *core.View, limit int) error {
	if !slices.Equal(v.Shape(), base.Shape()) {
		return &core.Error{
			Op: "stats", Object: v.Name(), Kind: core.ErrLayout,
			Err: fmt.Errorf("the base has shape %v, not %v", base.Shape(), v.Shape()),
		}
	}
	var err error
	s.base, err = newSource(ctx, base, s.gpu, limit, false)
	if err == nil && s.base.n != s.n {
		err = &core.Error{
			Op: "stats", Object: v.Name(), Kind: core.ErrDevice, Err: errors.New("a sample of arrays on two devices"),
			Remedy: "do not sample",
		}
	}
	if err == nil && numbers.TypeOf(v.Layout()) == numbers.TypeOf(base.Layout()) {
		s.halves = numbers.TypeOf(v.Layout()).Halves()
		s.base.halves = s.halves
	}
	return err
}

// take fills in the figures.
func (s *Summary) take(m moments) {
	s.NaN, s.PosInf, s.NegInf = m.nan, m.posInf, m.negInf
	s.Zero, s.Negative, s.Positive = m.zero, m.negative, m.plus
	n := m.finite()
	s.Seen = n + m.nan + m.posInf + m.negInf
	if n == 0 {
		s.Min, s.Max, s.Mean, s.Std = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		return
	}
	s.Min, s.Max, s.Mean, s.Std = m.low, m.high, m.mean, m.std
	s.Norm = math.Hypot(m.std, m.mean) * math.Sqrt(float64(n)*float64(s.Len)/float64(s.Seen)) // exact if all are finite
}

// plan says which elements of a source are read: all, in chunks; or a run of each chunk.
type plan struct {
	n, chunks int
	runLen    int // elements of a run; 0: whole chunks
	seed      uint64
}

func planOf(src *source, limit int, o *Options) plan {
	if limit > 0 && !src.sampled && limit < src.n {
		run := min(cmp.Or(o.Run, SampleRun), limit)
		return plan{n: src.n, chunks: limit / run, runLen: run, seed: o.Seed}
	}
	each := max(chunkLen, (src.n+maxChunks-1)/maxChunks)
	return plan{n: src.n, chunks: max((src.n+each-1)/each, 1)}
}

// part gives the elements of one chunk that are read.
func (p *plan) part(i int) (from, to int) {
	from, to = muldiv(p.n, i, p.chunks), muldiv(p.n, i+1, p.chunks)
	if p.runLen > 0 && to-from > p.runLen {
		runs := uint64((to - from + p.runLen - 1) / p.runLen)
		place := int((scatter(uint64(i)) + p.seed) % runs)
		from = min(from+place*p.runLen, to-p.runLen)
		to = from + p.runLen
	}
	return from, to
}

// len is how many elements are read.
func (p *plan) len() int {
	if p.runLen == 0 {
		return p.n
	}
	return p.chunks * p.runLen
}

// scatter makes of successive numbers such as have nothing to do with each other (SplitMix64's last steps).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sweep is how many successive seeds read the whole array.
func (p *plan) sweep() int {
	if p.runLen == 0 {
		return 1
	}
	return ceil(ceil(p.n, p.chunks), p.runLen)
}

// muldiv is a*b/c without overflow, for b <= c.
func muldiv(a, b, c int) int { return a/c*b + a%c*b/c }

// buffer is what a worker needs.
type buffer struct {
	block, base [blockLen]float64
	pairs       pairCounter
}

var buffers = sync.Pool{New: func() any { return new(buffer) }} //nolint:gochecknoglobals // a pool is for all

// run reads the elements on several goroutines, or on a GPU. The result does not depend on how many there are.
func (p *plan) run(ctx context.Context, src *source, workers int, count bool, edges []float64) (moments, *counter, error) {
	if src.gpu != nil {
		return src.gpu.sum(ctx, p, src, count, edges)
	}
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	batch := 1
	if p.runLen > 0 {
		batch = max(chunkLen/p.runLen/16, 1)
	}
	batches := (p.chunks + batch - 1) / batch
	workers = min(workers, batches)
	var (
		next   atomic.Int64
		parts  = make([]moments, batches)
		counts = make([]*counter, workers)
		errs   = make([]error, workers)
	)
	spread(workers, func(w int) {
		b, _ := buffers.Get().(*buffer) // it has no others
		defer buffers.Put(b)
		if count {
			counts[w] = newCounter(edges)
			if src.from.dense() && src.repeats == 1 && p.len() >= pairLeast {
				counts[w].pairs = newPairCounter(counts[w], &b.pairs)
			}
		}
		for errs[w] == nil {
			i := int(next.Add(1)) - 1
			if i >= batches {
				break
			}
			errs[w] = src.touch(ctx, b.base[:], func(r reader) error {
				p.chunk(&parts[i], counts[w], b.block[:], r, i*batch, min((i+1)*batch, p.chunks), src.repeats)
				return nil
			})
		}
		next.Store(int64(batches)) // the others need not go on
		if count {
			counts[w].fold()
		}
	})
	if err := errors.Join(errs...); err != nil {
		return moments{}, nil, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	}
	if !count {
		return pairwise(parts), nil, nil
	}
	for _, c := range counts[1:] {
		counts[0].merge(c)
	}
	return pairwise(parts), counts[0], nil
}

// spread has so many workers do their parts, the first of them on the caller's thread: who asks for one measures what that thread takes.
func spread(workers int, part func(w int)) {
	var wait sync.WaitGroup
	for w := range workers - 1 {
		wait.Go(func() { part(w + 1) })
	}
	part(0)
	wait.Wait()
}

// chunk reads some chunks.
func (p *plan) chunk(m *moments, c *counter, buf []float64, r reader, first, end, repeats int) {
	have := 0
	flush := func() {
		b, n := block(buf[:have])
		m.merge(&b)
		if c != nil {
			c.add(buf[:n], repeats)
		}
		have = 0
	}
	usual := 0 // up to there, some numbers are not finite
	for i := first; i < end; i++ {
		for from, to := p.part(i); from < to; {
			if n := min(to-from, singleLen) / step * step; have == 0 && n >= singleLeast && from >= usual {
				if m.addSingle(c, r.dense(from, n)) {
					from += n
					continue
				}
				usual = from + n
			}
			n := min(to-from, len(buf)-have)
			r.fill(buf[have:have+n], from)
			from, have = from+n, have+n
			if have == len(buf) {
				flush()
			}
		}
	}
	if have > 0 {
		flush()
	}
}

// pairwise merges neighbours, so that rounding grows with the logarithm of their number.
func pairwise(parts []moments) moments {
	switch len(parts) {
	case 0:
		return moments{}
	case 1:
		return parts[0]
	}
	a, b := pairwise(parts[:len(parts)/2]), pairwise(parts[len(parts)/2:])
	a.merge(&b)
	return a
}

// histogramEdges gives the edges of equal bins; nil if there are none.
func histogramEdges(ctx context.Context, src *source, o *Options) ([]float64, error) {
	switch {
	case o.Bins == 0 || o.Log:
		return nil, nil
	case o.Low < o.High:
		return edgesOf(o.Low, o.High, o.Bins), nil
	}
	sample, places := rangeSample, *o
	if o.Sample > 0 {
		sample = min(o.Sample, sample)
	} else {
		places.Seed = 0 // the same range at each look at the same elements
	}
	p := planOf(src, sample, &places)
	m, _, err := p.run(ctx, src, o.Workers, false, nil)
	if err != nil || m.finite() == 0 {
		return edgesOf(0, 1, o.Bins), err
	}
	return edgesOf(m.low, m.high, o.Bins), nil
}
