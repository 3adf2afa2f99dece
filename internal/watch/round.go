package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
)

// Program refreshes views of a program's arrays, as hostplugin's Session.Refresh does: what comes of each is written into looks. It
// is used by one goroutine at a time, and compared.
type Program interface {
	Refresh(ctx context.Context, looks []Look)
}

// Look is one look at an array.
type Look struct {
	Of   any        // [Array.Of]
	View *core.View // nil at first; afterwards the view of the array as it is now, or after an error what it was, or nil
	Err  error
}

// round looks at each array once, and says how much time that took.
func (s *Sampler) round(ctx context.Context) (cost time.Duration, err error) {
	s.letGo()
	arrays := s.all()
	numbers, cost := s.numbers(ctx, arrays)
	if ctx.Err() != nil {
		return cost, ctx.Err()
	}
	arrays = slices.DeleteFunc(arrays, func(w *watched) bool { _, ok := numbers[w.Name]; return ok })
	for len(arrays) > 0 && err == nil {
		n := together(arrays)
		var took time.Duration
		took, err = s.look(ctx, arrays[:n])
		arrays, cost = arrays[n:], cost+took
	}
	return cost, err
}

// The bounds of what is asked for at once: the program is not asked for each array, nor held up by many that it has to copy, and none is
// summed up long after it was asked for.
const (
	mostTogether = 64
	mostCopied   = 1 << 20 // bytes
	mostSummed   = 10 * time.Millisecond
)

// together is how many of the first arrays are looked at together.
func together(arrays []*watched) (n int) {
	var copied int64
	var summed time.Duration
	for n < min(len(arrays), mostTogether) && arrays[n].program == arrays[0].program {
		w := arrays[n]
		summed += w.figures // of the last look
		switch {
		case w.view == nil:
			copied += mostCopied / 8 // perhaps
		case w.view.Copied():
			copied += bytesOf(w.view)
		}
		if n > 0 && (copied > mostCopied || summed > mostSummed) {
			break
		}
		n++
	}
	return n
}

// look looks at arrays of one program, and says how much time that took: ours, and the program's if it copied them. That a program
// is too busy to answer at once costs nobody anything.
func (s *Sampler) look(ctx context.Context, arrays []*watched) (cost time.Duration, err error) {
	before := s.step(ctx) // the names led to the arrays after that, whenever these are summed up
	looks := make([]Look, len(arrays))
	for i, w := range arrays {
		looks[i] = Look{Of: w.of, View: w.view}
	}
	begun := time.Now()
	arrays[0].program.Refresh(ctx, looks)
	within := time.Since(begun)
	for i, w := range arrays {
		w.view = looks[i].View
	}
	measured := s.onGPU(ctx, arrays, looks)
	for i, w := range arrays {
		m := measured[i]
		if m == nil {
			m = &measurement{err: looks[i].Err}
			if m.err == nil {
				copying := CopyingTakes(w.view, within)
				within -= copying
				cost += copying
				s.measure(ctx, w, m)
			}
		}
		cost += m.took
		if m.err != nil && ctx.Err() != nil {
			return cost, ctx.Err()
		}
		after := s.lastStep(ctx)
		s.record(w, m.sum, m.err, after)
		if w.passing && w.lost >= givenUp {
			s.Remove(w.Name)
		}
		if m.err == nil {
			s.adjust(w, m.sum)
			s.judge(w, m.sum, m.unchanged, before, after)
		}
		if ctx.Err() != nil {
			return cost, ctx.Err()
		}
	}
	return cost, nil
}

// lastStep is step after a look. What was seen is told with its step though ctx has ended since, or ends now.
func (s *Sampler) lastStep(ctx context.Context) *stats.Number {
	n := s.step(ctx)
	if n != nil || ctx.Err() == nil {
		return n
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepGrace)
	defer cancel()
	return s.step(ctx)
}

// stepGrace is how long the program may take to say its step after the end.
const stepGrace = 500 * time.Millisecond

func (s *Sampler) step(ctx context.Context) *stats.Number {
	step := s.counts()
	if step == nil {
		return nil
	}
	return step(ctx)
}

// measurement is what came of a look.
type measurement struct {
	sum       *stats.Summary
	unchanged time.Duration // for how long the array has not changed
	took      time.Duration
	err       error
}

// onGPU measures those arrays that GPUs sum up, all at the same time: a GPU then turns from the program's work to ours once, which takes
// longer than to sum up most arrays. It gives nil for all others, of which copies have to be made, one after the other.
func (s *Sampler) onGPU(ctx context.Context, arrays []*watched, looks []Look) []*measurement {
	measured := make([]*measurement, len(arrays))
	for i, w := range arrays {
		if w.onGPU = looks[i].Err == nil && w.view.Device().Kind == core.CUDA && w.view.Len() > 0; w.onGPU {
			measured[i] = new(measurement)
			_ = w.view.Wait(ctx) // one after the other: each keeps a core busy for a while. Its error comes again
		}
	}
	var all sync.WaitGroup
	for i, m := range measured {
		if m != nil {
			all.Go(func() { s.measure(ctx, arrays[i], m) })
		}
	}
	all.Wait()
	for i, m := range measured {
		if m != nil && errors.Is(m.err, core.ErrUnsupported) {
			measured[i], arrays[i].onGPU = nil, false
		}
	}
	return measured
}

// measure sums an array up.
func (s *Sampler) measure(ctx context.Context, w *watched, m *measurement) {
	var changed bool
	m.sum, changed, m.took, m.err = s.sum(ctx, w)
	if m.err != nil {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed {
		w.Changed = now
	}
	m.unchanged = now.Sub(w.Changed)
}

// CopyingTakes is what an answer that came after a time, and copied an array, has cost the program, at most: what is longer was
// waiting. It is nothing for memory that is shared.
func CopyingTakes(v *core.View, within time.Duration) time.Duration {
	if !v.Copied() {
		return 0
	}
	return min(moving(v), within)
}

// moving is how long it takes at most to read all of an array once: a byte in a nanosecond, in any order.
func moving(v *core.View) time.Duration { return 50*time.Microsecond + time.Duration(bytesOf(v)) }

// bytesOf is how many bytes there are to copy: those of broadcast_to are fewer than there are elements.
func bytesOf(v *core.View) int64 {
	low, high := v.Span()
	return min(v.NBytes(), int64(high-low))
}
