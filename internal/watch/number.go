package watch

import (
	"context"
	"math"
	"time"

	"github.com/ndbridge/ndbridge/stats"
)

// Number is a number of Python's own, which is no array.
type Number struct {
	Type  string // "int" or "float"
	Value float64
}

// What asking for numbers costs the program, at most: what is longer was waiting.
const (
	askTakes    = 50 * time.Microsecond
	numberTakes = 20 * time.Microsecond
)

// summary sums a number up as an array of one element. But it is its own mean and extremes, NaN and infinities, too.
func (n Number) summary() *stats.Summary {
	x := n.Value
	s := &stats.Summary{Len: 1, Seen: 1, Min: x, Max: x, Mean: x, Norm: math.Abs(x)}
	switch {
	case math.IsNaN(x):
		s.NaN = 1
	case math.IsInf(x, 1):
		s.PosInf = 1
	case math.IsInf(x, -1):
		s.NegInf = 1
	case x == 0:
		s.Zero = 1
	case x < 0:
		s.Negative = 1
	default:
		s.Positive = 1
	}
	return s
}

// numbers looks at all that are numbers now, at once, and says which those are, and what that cost.
func (s *Sampler) numbers(ctx context.Context, all []*watched) (seen map[string]Number, cost time.Duration) {
	if s.opts.Numbers == nil {
		return nil, 0
	}
	before, begun := s.step(ctx), time.Now()
	seen = s.opts.Numbers(ctx)
	if len(seen) == 0 {
		return nil, 0
	}
	now := time.Now()
	after := s.lastStep(ctx)
	for _, w := range all {
		if n, ok := seen[w.Name]; ok {
			sum := n.summary()
			s.became(w, n, markOf(sum), now)
			s.record(w, sum, nil, after)
			s.judge(w, sum, now.Sub(w.Changed), before, after)
		}
	}
	return seen, min(now.Sub(begun), askTakes+numberTakes*time.Duration(len(seen)))
}

// became notes that the name is that of a number now.
func (s *Sampler) became(w *watched, n Number, m mark, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.view != nil { // it was an array
		_ = w.view.Close() // the session closes it, too
		w.view = nil
	}
	if !w.Number || m != w.mark {
		w.Changed = now
	}
	w.Number, w.mark, w.exact = true, m, true
	w.DType, w.Type, w.Shape, w.NBytes = 0, n.Type, []int{}, 0
}
