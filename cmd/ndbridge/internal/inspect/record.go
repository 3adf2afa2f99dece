package inspect

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/numbers"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

const (
	// recordEvery is how often what is recorded is looked at, and recordShare how much of the budget that may take while a page shows an
	// array, or allShare if alarms are of all arrays.
	recordEvery = 500 * time.Millisecond
	recordShare = 0.25
	allShare    = 0.75
	// maxRecorded is how many names are recorded at once, the first that are listed or shown: all arrays of the tree, and maxNumbers of
	// Python's own numbers.
	maxRecorded = maxFound + maxNumbers
	maxNumbers  = 512
	// maxScalars is up to how many arrays of one element are recorded that are no variables: as many as the page draws.
	maxScalars = 100
	// askPatience is how long the program may take to say its numbers.
	askPatience = time.Second
	// goneAfter is how many reads in a row a number must be missing until it is no longer asked for.
	goneAfter = 60
)

// recorder keeps the history of the program's scalars and of the arrays that pages show, and raises alarms. With alarms
// that the user has asked for it looks at all arrays.
type recorder struct {
	hub     *hub
	sampler *watch.Sampler
	arrays  *looks.Arrays
	all     bool // alarms are of all arrays. The hub's lock guards it, and alarms and step
	watched []watch.Alarm
	step    string                  // the name of the program's count of its steps; "": none
	shown   map[string]*atomic.Bool // by name: whether somebody sees the array. The hub's lock guards it
	counter *looks.Counter          // of step; nil: none. The hub's lock guards it
	state   watch.State             // the last one. The hub's lock guards it
	scalars map[string]bool         // that there are now. The hub's lock guards it
	numbers map[string]int          // of Python's own: how many reads in a row have not found it. The hub's lock guards it
}

func newRecorder(h *hub, o *Options) *recorder {
	r := &recorder{
		hub: h, all: len(o.Alarms) > 0, watched: o.Alarms, step: o.Step,
		shown: map[string]*atomic.Bool{}, scalars: map[string]bool{}, numbers: map[string]int{},
	}
	r.arrays = looks.Of(o.Session, hostplugin.AllowCopy())
	for _, text := range []string{"nan", "inf"} {
		if a, err := watch.ParseAlarm(text); err == nil && !r.all {
			r.watched = append(r.watched, a)
		}
	}
	r.sampler = watch.New(watch.Options{
		Interval: o.often(recordEvery), Budget: o.Budget, Alarms: r.watched, Step: r.count(), Numbers: r.read, Raised: r.raised, Looked: r.looked,
	})
	return r
}

// divide divides the budget among what is recorded and what is read for pages, half of which may be figures. The caller holds the hub's lock.
func (r *recorder) divide() {
	budget, recorded := r.hub.options.Budget, recordShare
	switch {
	case len(r.hub.readings) == 0:
		r.sampler.SetBudget(budget)
		return
	case r.all:
		recorded = allShare
	}
	r.sampler.SetBudget(budget * recorded)
	r.hub.pace.SetLimit(budget * (1 - recorded))
	r.hub.figures.SetLimit(budget * (1 - recorded) * figuresShare)
}

// isScalar reports whether an array is one number.
func isScalar(e contract.Entry) bool {
	return e.Err == nil && e.Layout.Len() == 1 && numbers.TypeOf(e.Layout).Known()
}

// scalarsOf gives the names of the scalars: of all that are variables, and of others until there are maxScalars.
func scalarsOf(variables, others []contract.Entry) map[string]bool {
	names := make(map[string]bool)
	for _, e := range variables {
		if isScalar(e) {
			names[e.Name] = true
		}
	}
	for _, e := range others {
		if isScalar(e) && len(names) < maxScalars {
			names[e.Name] = true
		}
	}
	return names
}

// listed takes the scalars, Python's own numbers, and all arrays if there are alarms for them. The caller holds the hub's lock.
func (r *recorder) listed(variables []contract.Entry, all contract.Found) {
	arrays := slices.Concat(variables, all.Entries)
	before := r.scalars
	r.scalars = scalarsOf(variables, all.Entries)
	for name := range before {
		if shown := r.shown[name]; shown != nil && !r.scalars[name] {
			shown.Store(r.all || r.hub.readings[name] != nil)
		}
	}
	r.forget(arrays, all.Numbers)
	r.addNumbers(all.Numbers)
	for _, e := range arrays {
		if r.scalars[e.Name] {
			r.add(e.Name).Store(true)
		}
	}
	for _, e := range all.Entries {
		if r.all && e.Err == nil {
			r.add(e.Name).Store(true)
		}
		if r.shown[e.Name] != nil {
			r.sampler.Also(e.Name, e.Also)
		}
	}
}

// sees says whether somebody sees an array. The caller holds the hub's lock.
func (r *recorder) sees(name string, on bool) {
	if shown := r.add(name); shown != nil {
		shown.Store(on || r.all || r.scalars[name])
	}
}

// forget has what the program does not have any more, and no page shows, not be looked at. If there is no room for others, its history goes, too.
func (r *recorder) forget(arrays []contract.Entry, numbers []contract.Number) {
	there := make(map[string]bool)
	for _, e := range arrays {
		there[e.Name] = true
	}
	for _, n := range numbers {
		there[n.Name] = true
	}
	full := len(r.shown) >= maxRecorded
	for name, shown := range r.shown {
		switch {
		case there[name] || r.hub.readings[name] != nil:
		case full && !r.isNumber(name):
			delete(r.shown, name)
			r.sampler.Remove(name)
		default:
			shown.Store(false)
		}
	}
	for name := range r.hub.readings { // there may have been no room
		r.sees(name, true)
	}
}

// add has an array recorded while it is shown.
func (r *recorder) add(name string) *atomic.Bool {
	shown := r.shown[name]
	if shown != nil {
		return shown
	}
	shown = new(atomic.Bool)
	if len(r.shown) >= maxRecorded {
		return shown
	}
	if array, err := r.arrays.Array(name); err == nil {
		r.shown[name] = shown
		r.sampler.Add(watch.Array{Name: name, Program: r, Of: recorded{array.Of, shown}})
	}
	return shown
}

// addNumbers has numbers of Python's own recorded. The caller holds the hub's lock.
func (r *recorder) addNumbers(numbers []contract.Number) {
	for _, n := range numbers {
		_, known := r.numbers[n.Name]
		if !known && len(r.numbers) >= maxNumbers {
			continue
		}
		if r.add(n.Name); r.shown[n.Name] != nil {
			r.numbers[n.Name] = 0
		}
	}
}

// isNumber reports whether a number has that name. The caller holds the hub's lock.
func (r *recorder) isNumber(name string) bool {
	_, ok := r.numbers[name]
	return ok
}

// read reads those numbers, all in one request.
func (r *recorder) read(ctx context.Context) map[string]watch.Number {
	r.hub.mu.Lock()
	all := slices.Collect(maps.Keys(r.numbers))
	r.hub.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	values, err := looks.Numbers(ctx, r.hub.options.Session, all)
	if err != nil {
		return nil // the page is told of what matters in another way
	}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	for _, name := range all {
		if _, ok := values[name]; ok {
			r.numbers[name] = 0
		} else if r.numbers[name]++; r.numbers[name] >= goneAfter {
			delete(r.numbers, name)
		}
	}
	return values
}

var errNotShown = errors.New("nobody looks at it")

// recorded is an array that is looked at for as long as it is shown.
type recorded struct {
	of    any
	shown *atomic.Bool
}

// Refresh implements [watch.Program]. Memory that the program is done with is not kept longer than it is shown.
func (r *recorder) Refresh(ctx context.Context, all []watch.Look) {
	var shown []watch.Look
	var at []int
	for i, l := range all {
		if one, ok := l.Of.(recorded); ok && one.shown.Load() {
			shown, at = append(shown, watch.Look{Of: one.of, View: l.View}), append(at, i)
			continue
		}
		if l.View != nil {
			_ = l.View.Close() // the session reports what matters
		}
		all[i].View, all[i].Err = nil, errNotShown
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r.arrays.Refresh(ctx, shown)
	for n, i := range at {
		all[i].View, all[i].Err = shown[n].View, shown[n].Err
	}
}

// tell takes the last state, and tells pages of the alarms.
func (r *recorder) tell() {
	h := r.hub
	h.mu.Lock()
	idle := len(h.clients) == 0
	h.mu.Unlock()
	if idle {
		return
	}
	state := r.sampler.State()
	h.mu.Lock()
	defer h.mu.Unlock()
	r.state = state
	if text := jsonMessage(r.alarms()); string(text.bytes) != string(h.latest[aboutAlarms].bytes) {
		h.tell(aboutAlarms, text)
	}
}

// raised tells pages of an alarm, which does not wait for the end of the round.
func (r *recorder) raised(watch.Event) { r.tell() }

// looked tells pages what is new, after each round.
func (r *recorder) looked() {
	r.tell()
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		h.offerPast(c)
	}
}

// past is new points of series.
type past struct {
	Topic  string   `json:"topic"` // "history", of one array, or "scalars"
	Series []points `json:"series"`
}

type points struct {
	Name  string         `json:"name"`
	Now   string         `json:"now,omitempty"` // the last of them, if JSON has no such number
	Some  bool           `json:"some"`          // the last is of a sample
	Reset bool           `json:"reset"`         // they are all there are
	Times []float64      `json:"times"`         // in seconds
	Min   []stats.Number `json:"min,omitempty"`
	Mean  []stats.Number `json:"mean"`
	Max   []stats.Number `json:"max,omitempty"`

	Rate     stats.Number `json:"rate"`     // how fast the mean changes, per second
	Versions stats.Number `json:"versions"` // that the program publishes, per second
}

// offerPast has a page told what it lacks of scalars and of the history of what it shows. The caller holds the lock.
func (h *hub) offerPast(c *client) {
	offer := func(t topic, name string, wanted func(string) bool) {
		c.out.lazy(t, func() (message, bool) {
			h.mu.Lock()
			defer h.mu.Unlock()
			m := past{Topic: name}
			for _, s := range h.recorder.state.Arrays {
				if wanted(s.Name) && (!s.Number || s.Changed.After(c.has[s.Name])) { // most numbers are constants
					if p := newer(&s, c.has[s.Name], t == aboutHistory); len(p.Times) > 0 {
						c.has[s.Name] = s.History[len(s.History)-1].Time
						m.Series = append(m.Series, p)
					}
				}
			}
			return jsonMessage(m), len(m.Series) > 0
		})
	}
	offer(aboutScalars, "scalars", func(name string) bool {
		return (h.recorder.scalars[name] || h.recorder.isNumber(name)) && (c.sees == nil || c.sees.of.name != name)
	})
	if c.sees != nil {
		offer(aboutHistory, "history", func(name string) bool { return c.sees != nil && name == c.sees.of.name })
	}
}

// infinite is the value of what is one number, which is NaN or an infinity.
func infinite(s *watch.Series) float64 {
	switch {
	case s.Number:
		return s.Last.Mean
	case s.Last.PosInf > 0:
		return math.Inf(1)
	case s.Last.NegInf > 0:
		return math.Inf(-1)
	}
	return math.NaN()
}

// newer gives the points of a series after a time.
func newer(s *watch.Series, after time.Time, all bool) points {
	p := points{
		Name: s.Name, Reset: after.IsZero(), Rate: rateOf(s), Versions: versionsOf(s), Some: s.Last != nil && !s.Last.Exact(),
	}
	for _, at := range s.History {
		if at.Time.After(after) {
			p.Times = append(p.Times, float64(at.Time.UnixMilli())/1000)
			p.Mean = append(p.Mean, at.Mean)
			if all {
				p.Min, p.Max = append(p.Min, at.Min), append(p.Max, at.Max)
			}
		}
	}
	if n := len(s.History); n > 0 && s.Last.Finite() == 0 && (s.Number || s.Last.Len == 1) {
		p.Now = strconv.FormatFloat(infinite(s), 'g', -1, 64)
	}
	return p
}
