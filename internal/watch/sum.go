package watch

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
)

// sum sums an array up, says whether it has changed, and how much time that took.
func (s *Sampler) sum(ctx context.Context, w *watched) (sum *stats.Summary, changed bool, took time.Duration, err error) {
	opts := &stats.Options{Workers: 1, Bins: s.opts.Bins, Seed: w.seed}
	w.seed++
	if !s.opts.Exact {
		opts.Sample, opts.Run = w.sample, runOf(w.sample)
		if w.view.Version() == 0 {
			opts.Bins = 0 // they take five times as long as all else, so most looks have those of an earlier one
		}
	}
	sum, err = s.take(ctx, w, opts, &took)
	w.figures = took
	if err == nil && opts.Bins != s.opts.Bins {
		err = s.bin(ctx, w, &took)
		sum.Histogram = w.bins
	}
	if err == nil {
		changed, err = s.changed(ctx, w, sum, &took)
	}
	return sum, changed, took, err
}

// take is stats.Of of the array. It adds to took for how long that has used a core; of a GPU, for how long it has used that, and not how long it
// waited for what the program has the GPU do.
func (s *Sampler) take(ctx context.Context, w *watched, opts *stats.Options, took *time.Duration) (sum *stats.Summary, err error) {
	opts.NoCopy = w.onGPU
	look := func() error {
		sum, err = s.of(ctx, w.view, opts)
		return err
	}
	if w.onGPU {
		begun := time.Now()
		if look() == nil {
			read := int64(sum.Seen) * int64(w.view.DType().Size())
			*took += min(gpuTakes+time.Duration(read/gpuReads), time.Since(begun))
		}
		return sum, err
	}
	t, err := spent(w.view, look)
	*took += t
	return sum, err
}

// What one look of several takes of a core and of a GPU, and how many bytes that reads in a nanosecond, at least.
const (
	gpuTakes = 30 * time.Microsecond
	gpuReads = 100
)

// changed reports whether an array is another one than at the last look. A sample is of other elements each time, so it is not
// compared.
func (s *Sampler) changed(ctx context.Context, w *watched, sum *stats.Summary, took *time.Duration) (bool, error) {
	whole := sum.Exact() || sum.Version > 0
	now, before := sum, sum
	same := &stats.Options{Workers: 1, Sample: leastSample, Run: runOf(leastSample)}
	var err error
	if !whole {
		now, err = s.take(ctx, w, same, took)
		before = now
	}
	first := w.Looks == 0
	if err == nil && !first && whole != w.exact {
		if w.exact {
			same.Sample = 0
		}
		before, err = s.take(ctx, w, same, took) // as it was looked at then
	}
	if err != nil {
		return false, err
	}
	changed := first || markOf(before) != w.mark
	w.mark, w.exact = markOf(now), whole
	return changed, nil
}

// bin makes a new histogram if the time that it took last is saved.
func (s *Sampler) bin(ctx context.Context, w *watched, took *time.Duration) error {
	w.saved += s.share() * binShare
	if w.saved < w.binning {
		return nil
	}
	before := *took
	sum, err := s.take(ctx, w, &stats.Options{Workers: 1, Bins: s.opts.Bins, Sample: binSample, Run: binRun, Seed: w.seed}, took)
	if err == nil {
		w.bins = sum.Histogram
	}
	w.saved, w.binning = 0, (*took - before).Seconds()
	return err
}

// wholeIn is in what time looks at all elements must be paid for. A look at all finds what it looks for sooner than samples do that come more
// often, and in which each element takes longer.
const wholeIn = time.Second

// share is how many seconds a look at one of the arrays may take.
func (s *Sampler) share() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.Limit() * max(s.opts.Interval, wholeIn).Seconds() / float64(max(len(s.arrays), 1))
}

// adjust chooses how many elements of an array the next look samples: as many as its share of the budget pays for, by what elements
// cost lately.
func (s *Sampler) adjust(w *watched, sum *stats.Summary) {
	// The first look at a view maps its pages, which says nothing of the next ones, unless each has another view.
	fresh, before := w.view != w.summed, w.fresh
	w.summed, w.fresh = w.view, fresh
	if fresh && !before {
		return
	}
	share := s.share()
	if s.opts.Bins != 0 && sum.Version == 0 {
		share *= 1 - binShare
	}
	each := w.figures.Seconds() / float64(max(sum.Seen, leastSample))
	last := &w.perPiece[0]
	if sum.Exact() {
		last = &w.perPiece[1]
	}
	if *last > 0 {
		each = *last + (each-*last)/4
	}
	*last = each
	if !sum.Exact() {
		w.perPiece[1] *= forgets
	}
	sampled, all := w.perPiece[0], w.perPiece[1]
	if all == 0 {
		all = sampled / quicker
	}
	if sampled == 0 {
		sampled = all * quicker
	}
	// Samples that take little less than all elements would find what they look for much later.
	if float64(sum.Len)*all <= max(share, atMost*leastSample*sampled) {
		w.sample = 0
		return
	}
	// Samples of one size read all elements in turn; those of another begin anew.
	if n := int(min(max(share/max(sampled, all), leastSample), mostSample)); n < w.sample*2/3 || n > 2*w.sample {
		w.sample = n
	}
}

const (
	// quicker is by how much an element may be read in less time if all are read, and not a sample.
	quicker = 4
	// atMost is how many times as long as the smallest sample a look at all elements may take, though it takes more than it may.
	atMost = 6
)

// forgets is how quickly it is forgotten that all elements took too long: others may have been at work.
const forgets = 0.9

// spent is how long f has used a core, which reads v on this thread alone; if it copies what a GPU has, how long that took, and not how long it
// waited for what the program has the GPU do.
func spent(v *core.View, f func() error) (time.Duration, error) {
	begun := time.Now()
	took, err := OnThread(f)
	if v.Device().Kind != core.CPU {
		took = min(took+moving(v), time.Since(begun))
	}
	return took, err
}

// OnThread is how much processor time f takes on the thread of its caller.
func OnThread(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	err := f()
	return Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun, err
}

// Clock reads a clock of the kernel's: unix.CLOCK_THREAD_CPUTIME_ID is the processor time that this thread has taken.
func Clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0 // Linux has those clocks
	}
	return time.Duration(t.Nano())
}
