package inspect

import (
	"context"
	"time"

	"github.com/ndbridge/ndbridge/stats"
)

const (
	// Unless all are asked for, as many elements are looked at as the budget pays for in figuresTime, between these bounds.
	leastSample = 1 << 16
	mostSample  = 1 << 24
	figuresTime = 500 * time.Millisecond
	// figuresShare is how much of what reading for pages may take figures may.
	figuresShare = 0.5
	// lineCells is how many points a line has at most. No more elements are looked at for all of them than for the fewest figures.
	lineCells = 512
	perPoint  = leastSample / lineCells
)

// state is what a page is told of the array that it looks at.
type state struct {
	Topic     string `json:"topic"` // "array"
	Name      string `json:"name"`
	Error     string `json:"error,omitempty"`
	Number    string `json:"number,omitempty"` // the type, if the name is that of a number of Python's own, and no array
	Framework string `json:"framework"`
	DType     string `json:"dtype"`
	Shape     []int  `json:"shape"`
	Strides   []int  `json:"strides"`
	NBytes    int64  `json:"nbytes"`
	Device    string `json:"device"`
	Route     string `json:"route"`
	Reason    string `json:"reason"`
	ReadOnly  bool   `json:"read_only"`
	Live      bool   `json:"live"`
	Stale     bool   `json:"stale"` // the name means something else now, as Error says
	Copied    bool   `json:"copied"`
	Version   uint64 `json:"version"`
	Published int64  `json:"published"` // in milliseconds; 0: it was not
	Torn      bool   `json:"torn"`
	Gone      bool   `json:"gone"`   // the program is
	Pinned    bool   `json:"pinned"` // there is something to compare with
	PinnedOf  uint64 `json:"pinned_of"`
	Diff      bool   `json:"diff"` // all that follows is of the difference to it

	Figures *stats.Summary `json:"figures,omitempty"`
	Line    *stats.Cells   `json:"line,omitempty"`

	Spectrum *spectrum `json:"spectrum,omitempty"`
}

// figures sums the array up for each sight, as often as people can read it. There is no news if nothing has changed since
// the last time. asked says that somebody has just begun to look.
func (w *reading) figures(ctx context.Context, sights []*sight) (news, asked bool) {
	fresh := time.Since(w.told) >= figuresEvery
	sums := map[sumKey]*stats.Summary{}
	changed := false
	for _, s := range sights {
		if !fresh && w.known[s] || !w.wanted(s) {
			continue
		}
		asked = asked || !w.known[s]
		w.known[s] = true
		st, err := w.sumUp(ctx, s.look, sums)
		if ctx.Err() != nil {
			return false, false
		}
		if err != nil && w.failed == nil { // else that is why
			st.Error = err.Error()
		}
		w.tell(s, aboutArray, jsonMessage(st))
	}
	if fresh {
		w.told = time.Now()
	}
	for key, sum := range sums {
		if key.diff || !fresh {
			continue
		}
		last := w.last
		changed = changed || last.Len != sum.Len || last.Mean != sum.Mean || last.Norm != sum.Norm || last.NaN != sum.NaN || last.PosInf != sum.PosInf ||
			last.NegInf != sum.NegInf || last.Min != sum.Min || last.Max != sum.Max
		w.last = *sum
		w.last.Version = w.view.Version()
	}
	switch {
	case changed:
		w.waiting = fastest
	case fresh:
		w.waiting = min(w.waiting*3/2, slowest)
	}
	return changed || !fresh, asked
}

// state is what a sight says of the name, whatever it means.
func (w *reading) state() state {
	st := state{Topic: "array", Name: w.name, Number: w.number}
	if w.failed != nil {
		st.Error = w.failed.Error()
	}
	return st
}

// sumKey is what figures depend on.
type sumKey struct{ exact, log, diff bool }

// sumUp makes what a sight says of the array.
func (w *reading) sumUp(ctx context.Context, l look, sums map[sumKey]*stats.Summary) (state, error) {
	v := w.view
	l = l.fit(v.Layout())
	of := v.Layout()
	st := w.state()
	st.Framework, st.DType, st.Shape, st.Strides, st.NBytes = v.Framework(), dtypeOf(of), of.Shape(), of.Strides(), of.NBytes()
	st.Device, st.Route, st.Reason, st.ReadOnly, st.Copied = of.Device().String(), string(v.Route()), string(v.Reason()), of.ReadOnly(), v.Copied()
	st.Version, st.Torn, st.Gone, st.Live = v.Version(), stats.Torn(v) || w.ring.buffers == 1, w.over(), !v.Copied() && w.failed == nil
	st.Stale = w.failed != nil && !st.Gone
	if w.failed == nil && w.unkept != nil {
		st.Error = w.unkept.Error()
	}
	if p := v.Published(); !p.IsZero() {
		st.Published = p.UnixMilli()
	}
	base := w.pinned
	if st.Pinned = base != nil; st.Pinned {
		st.PinnedOf = base.Version()
	}
	if !l.Diff || base != nil && !sameShape(base, v) {
		base = nil
	}
	st.Diff = base != nil
	key := sumKey{l.Exact, l.Log, st.Diff}
	sum := sums[key]
	if sum == nil {
		o := stats.Options{Bins: stats.Auto, Log: l.Log, Base: base, Seed: uint64(time.Now().UnixNano())} //nolint:gosec // any number will do
		if !l.Exact {
			o.Sample, o.Workers = w.affordable(), 1
		}
		begun := w.clocks()
		var err error
		if sum, err = stats.Of(ctx, v, &o); err != nil {
			return st, err
		}
		w.learn(w.took(w.clocks().minus(begun), sum, o.Workers != 1), sum.Seen)
		sums[key] = sum
	}
	st.Figures = sum
	if of.Rank() == 0 || of.Len() == 0 {
		return st, nil
	}
	var err error
	o := stats.CellOptions{PerCell: l.perPoint(), Base: base, Workers: 1}
	if l.Spectrum {
		st.Spectrum, err = spectrumOf(ctx, v, l.Line, l.At, o)
	} else {
		st.Line, err = stats.Line(ctx, v, l.Line, l.At, lineCells, &o)
	}
	return st, err
}

// perPoint is how many elements of each point of a line are looked at; 0: all.
func (l look) perPoint() int {
	if l.Exact {
		return 0
	}
	return perPoint
}

// took is what figures took of processors, with those that the look's thread knows nothing of: several threads make those of all elements.
func (w *reading) took(t spell, sum *stats.Summary, many bool) time.Duration {
	took := t.own
	if many {
		took = t.all
		w.besides.own += t.all - t.own
	}
	if !w.view.Device().HostReadable() && sum.Taken > took { // a GPU's time is the program's, too
		w.besides = w.besides.plus(spell{sum.Taken - took, sum.Taken - took})
		took = sum.Taken
	}
	return took
}

// affordable is how many elements figures are made of: few at first, since each page of memory that is looked at for the first time takes a
// while, and somebody waits. More follow soon.
func (w *reading) affordable() int {
	if w.each == 0 {
		return leastSample
	}
	return int(min(max(w.soon.Limit()*figuresTime.Seconds()/w.each, leastSample), mostSample))
}

// learn remembers what an element takes.
func (w *reading) learn(took time.Duration, seen int) {
	each := took.Seconds() / float64(max(seen, leastSample))
	if w.each > 0 {
		each = w.each + (each-w.each)/4
	}
	w.each = each
}
