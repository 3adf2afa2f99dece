package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/stats"
)

// Array is a name to watch.
type Array struct {
	Name    string
	Program Program
	Of      any // what the program knows the array by
	// Passing arrays are given up when they were not found (core.ErrNotFound) in some looks in a row, as those of a function
	// that has returned. They can be added again.
	Passing bool
}

// givenUp is how many looks those are.
const givenUp = 10

// The defaults of Options.
const (
	DefaultInterval = 500 * time.Millisecond
	DefaultBudget   = 0.01
	DefaultHistory  = 512
)

// Options says how arrays are watched. The zero value is useful.
type Options struct {
	Interval time.Duration // from one look at an array to the next, at least; 0: DefaultInterval
	// Budget is the share of one core's time that looks may take; 0: DefaultBudget. Looks are made one at a time and by
	// one goroutine, which reads no faster than one core can, so it bounds the share of the memory's bandwidth, too. If
	// looks at everything take more than they may in a second, fewer elements are sampled; and if looks take more than they may in an
	// interval, they become rarer.
	Budget  float64
	Exact   bool // look at all elements, always; then looks only become rarer
	History int  // how many looks at each array are kept; 0: DefaultHistory
	Bins    int  // of the histogram; see stats.Options
	Alarms  []Alarm
	// Step reads the program's own count of its steps, nil if that cannot be read now; it is called before and after each
	// look, on the goroutine of Run. nil: there is none.
	Step func(ctx context.Context) *stats.Number
	// Numbers reads the numbers of Python's own among what is watched, by name, at the beginning of each round, on the goroutine of
	// Run. What it gives is looked at in no other way in that round. nil: there are none.
	Numbers func(ctx context.Context) map[string]Number
	// Raised is called with each alarm, on the goroutine of Run; nil: nobody.
	Raised func(Event)
	// Looked is called after each round, on the goroutine of Run; nil: nobody.
	Looked func()
}

// The bounds of a sample.
const (
	leastSample = 1 << 12
	mostSample  = 1 << 24

	// A sample has at least so many runs, of a page of float32 at most: to look at a page that nobody has used for a while takes as long as to read all of it, or
	// longer.
	leastRuns  = 16
	longestRun = 1 << 10

	binSample = 1 << 13 // of a histogram that is not of the same look as the other figures
	binRun    = 1 << 6
	binShare  = 0.15 // of what looks may take
)

// runOf is how many neighbours are read at each place of a sample.
func runOf(sample int) int { return min(sample/leastRuns, longestRun) }

// credit is how long what was not spent may be spent later: so much that the first looks at some hundred arrays do not hold up the next ones.
const credit = 10 * time.Second

// Sampler watches arrays. Its methods are safe for concurrent use.
type Sampler struct {
	opts     Options
	pace     *Pace
	finished chan struct{}                                                             // closed by Finish
	of       func(context.Context, *core.View, *stats.Options) (*stats.Summary, error) // stats.Of

	mu      sync.Mutex
	arrays  []*watched // sorted by name
	removed []*watched // since the last round
	events  []Event    // the last ones
	raised  int        // all there were
	usage   Usage
}

// Usage is what watching has cost.
type Usage struct {
	Since    time.Time     `json:"since"`
	Looking  time.Duration `json:"looking"` // the time that looks took
	Share    float64       `json:"share"`   // of one core, lately
	Bytes    int64         `json:"bytes"`   // that were read
	Rounds   int           `json:"rounds"`
	Interval time.Duration `json:"interval"` // of the last round, which is longer than was asked for if the budget wants it
}

// watched is one array. Only Run touches what is not in Series.
type watched struct {
	Series

	program  Program
	of       any
	passing  bool
	also     []string // other names; the sampler's lock guards it
	lost     int      // looks in a row that did not find it
	there    int      // looks in a row that found it
	came     bool     // it was found again after it was not
	view     *core.View
	onGPU    bool       // which sums it up
	summed   *core.View // that of the last figures
	fresh    bool       // it was another one than before
	mark     mark
	exact    bool          // the last look saw all elements
	sample   int           // elements; 0: all
	figures  time.Duration // what the last ones took
	perPiece [2]float64    // seconds that an element took, lately: of a sample, and of all; 0: not known
	bins     stats.Histogram
	binning  float64 // seconds that they took
	saved    float64 // of what looks may take, for the next ones
	seed     uint64
	quiet    map[string]int           // looks since the condition of an alarm that was raised was met
	clean    map[string]*stats.Number // the last step at which the condition of an alarm was not met
	sweeps   map[string]sweep         // the looks at samples that have not met it
}

// New makes a sampler.
func New(opts Options) *Sampler {
	if opts.Interval <= 0 {
		opts.Interval = DefaultInterval
	}
	if opts.Budget <= 0 {
		opts.Budget = DefaultBudget
	}
	if opts.History <= 0 {
		opts.History = DefaultHistory
	}
	return &Sampler{opts: opts, pace: NewPace(opts.Budget, credit), of: stats.Of, finished: make(chan struct{})}
}

// Add watches further arrays. Names that are watched already keep what is known of them.
func (s *Sampler) Add(arrays ...Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range arrays {
		i, there := slices.BinarySearchFunc(s.arrays, a.Name, byName)
		if !there {
			s.arrays = slices.Insert(s.arrays, i, &watched{
				Series: Series{Name: a.Name}, program: a.Program, of: a.Of, passing: a.Passing, sample: 1 << 16,
				quiet: make(map[string]int), clean: make(map[string]*stats.Number), sweeps: make(map[string]sweep),
			})
		}
	}
}

// Remove watches arrays no longer, and forgets what is known of them. They can be added again.
func (s *Sampler) Remove(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if i, there := slices.BinarySearchFunc(s.arrays, name, byName); there {
			s.removed = append(s.removed, s.arrays[i])
			s.arrays = slices.Delete(s.arrays, i, i+1)
		}
	}
}

func byName(w *watched, name string) int { return strings.Compare(w.Name, name) }

// all gives the arrays that are watched now.
func (s *Sampler) all() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrays)
}

// Finish has Run look at everything once more, with the views that it has, and end. It is called once.
func (s *Sampler) Finish() { close(s.finished) }

// Run watches until ctx ends, whose error it gives, or until Finish is called. It is called once. An array that cannot be looked at has an error in its
// Series.
func (s *Sampler) Run(ctx context.Context) error {
	defer s.close()
	s.mu.Lock()
	s.usage.Since = time.Now()
	s.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.finished:
			last = true
		case <-timer.C:
		}
		begun := time.Now()
		cost, err := s.round(ctx)
		if err != nil {
			return err
		}
		s.pace.Spend(cost)
		interval := max(s.opts.Interval, time.Since(begun)+s.pace.Owed())
		s.mu.Lock()
		s.usage.Rounds++
		s.usage.Looking += cost
		s.usage.Interval = interval
		s.usage.Share = float64(cost) / float64(interval)
		s.mu.Unlock()
		if s.opts.Looked != nil {
			s.opts.Looked()
		}
		timer.Reset(max(interval-time.Since(begun), 0))
	}
	return nil
}

// Once looks at everything once more, after Run: at the end of a script.
func (s *Sampler) Once(ctx context.Context) error {
	defer s.close()
	_, err := s.round(ctx)
	if err == nil && s.opts.Looked != nil {
		s.opts.Looked()
	}
	return err
}

func (s *Sampler) close() {
	s.letGo()
	closeAll(s.all())
}

// letGo closes the views of what is not watched any more. Run's goroutine calls it, since it may have been looking at them.
func (s *Sampler) letGo() {
	s.mu.Lock()
	removed := s.removed
	s.removed = nil
	s.mu.Unlock()
	closeAll(removed)
}

func closeAll(arrays []*watched) {
	for _, w := range arrays {
		if w.view != nil {
			_ = w.view.Close() // the session closes it, too
			w.view = nil
		}
	}
}

// record keeps what a look has seen.
func (s *Sampler) record(w *watched, sum *stats.Summary, err error, step *stats.Number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := errors.Is(err, core.ErrNotFound)
	w.Passed = lost && w.passing
	if lost {
		w.lost++
		w.there = 0
	} else {
		w.Tries++
		w.came = w.came || w.lost > 0
		w.lost = 0
		w.there++
	}
	if err != nil {
		w.Error = said(err)
		return
	}
	w.Error = ""
	w.Looks++
	if w.view != nil { // else it is a number
		l := w.view.Layout()
		w.Number, w.DType, w.Type, w.Shape, w.NBytes = false, l.DType(), l.DType().String(), l.Shape(), l.NBytes()
		if l.Tag() != "" {
			w.Type = l.Tag()
		}
		w.Route, w.Reason = w.view.Route(), w.view.Reason()
	}
	w.Last = sum
	// Those who have a State read its points: none is moved, or written to, but for those that are added.
	w.History = w.History[max(len(w.History)-s.opts.History+1, 0):]
	if n := s.opts.History; len(w.History) == n-1 && cap(w.History) < n { // append would make room for three quarters more
		w.History = append(make([]Point, 0, n+n/4), w.History...)
	}
	w.History = append(w.History, pointOf(sum, time.Now(), step))
	size := int64(w.DType.Bits() * w.DType.Lanes())
	s.usage.Bytes += int64(sum.Seen) * size / 8
}

// judge raises alarms.
func (s *Sampler) judge(w *watched, sum *stats.Summary, unchanged time.Duration, before, after *stats.Number) {
	var raised []string
	alarms, names := s.alarmsOf(w)
	for _, a := range alarms {
		i := slices.IndexFunc(names, func(name string) bool { return a.concerns(name, w.Number) })
		if i < 0 {
			continue
		}
		value := a.value(sum, unchanged)
		quiet, known := w.quiet[a.text]
		if !a.holds(value) {
			w.notMet(a, sum, before)
			if known {
				if quiet++; quiet >= rearm {
					delete(w.quiet, a.text)
				} else {
					w.quiet[a.text] = quiet
				}
			}
			continue
		}
		raised = append(raised, a.text)
		delete(w.sweeps, a.text)
		w.quiet[a.text] = 0
		if known || w.passing && s.told(w, a) {
			continue
		}
		e := Event{
			Time: time.Now(), Name: names[i], Alarm: a.text, Figure: a.figure, Value: stats.Number(value), Version: sum.Version,
			Step: after, Before: w.clean[a.text], Seen: sum.Seen, Len: sum.Len,
		}
		s.mu.Lock()
		s.events = append(s.events, e)
		s.raised++
		if len(s.events) > s.opts.History {
			s.events = slices.Delete(s.events, 0, len(s.events)-s.opts.History)
		}
		s.mu.Unlock()
		if s.opts.Raised != nil {
			s.opts.Raised(e)
		}
	}
	maps.DeleteFunc(w.quiet, func(text string, _ int) bool { // what is set again is raised again
		return !slices.ContainsFunc(alarms, func(a Alarm) bool { return a.text == text })
	})
	s.mu.Lock()
	w.Raised = raised
	s.mu.Unlock()
}

// State is what a sampler knows.
type State struct {
	Arrays []Series `json:"arrays"` // sorted by name
	Events []Event  `json:"events"` // the last alarms, the oldest first
	Raised int      `json:"raised"` // how many alarms there were
	Usage  Usage    `json:"usage"`
}

// State gives all that is known now, which stays as it is. Its slices are only read.
func (s *Sampler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Arrays: make([]Series, len(s.arrays)), Events: slices.Clone(s.events), Raised: s.raised, Usage: s.usage}
	for i, w := range s.arrays {
		state.Arrays[i] = w.Series
	}
	return state
}
