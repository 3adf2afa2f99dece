package inspect

import (
	"context"
	"fmt"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

const (
	maxEvents = 100
	maxAlarms = 100
)

// watched is what a page has watched: the alarms, as ndbridge watch takes them, of all arrays or of those that are
// shown, and the name of the program's count of its steps.
type watched struct {
	Alarms []string `json:"alarms"`
	All    bool     `json:"all"`
	Step   string   `json:"step"`
}

// watch changes what is watched, for all pages. What is no alarm is refused, and the page that asked is told why. The caller
// holds the hub's lock.
func (r *recorder) watch(c *client, w watched) error {
	if len(w.Alarms) > maxAlarms {
		return fmt.Errorf("%d alarms", len(w.Alarms))
	}
	refuse := func(err error) error {
		m := r.alarms()
		m.Refused = err.Error()
		c.out.put(aboutAlarms, jsonMessage(m))
		return nil
	}
	all := []watch.Alarm{}
	for _, text := range w.Alarms {
		a, err := watch.ParseAlarm(text)
		if err != nil {
			return refuse(fmt.Errorf("%s: %w", text, err))
		}
		all = append(all, a)
	}
	if w.Step != "" {
		if _, err := r.hub.options.Session.Source(w.Step); err != nil {
			return refuse(err)
		}
	}
	r.watched, r.all = all, w.All
	r.divide()
	if r.step != w.Step {
		r.step = w.Step
		r.sampler.SetStep(r.count())
	}
	r.sampler.SetAlarms(all)
	for name, shown := range r.shown {
		shown.Store(r.all || r.scalars[name] || r.hub.readings[name] != nil)
	}
	r.hub.tell(aboutAlarms, jsonMessage(r.alarms()))
	return nil
}

// count counts the program's steps; nil: nobody has named what counts them.
func (r *recorder) count() func(context.Context) *stats.Number {
	r.counter = nil
	if r.step == "" {
		return nil
	}
	counter, err := looks.NewCounter(r.hub.options.Session, r.step)
	if err != nil {
		return nil // the flag was checked, and so is what pages ask for
	}
	r.counter = counter
	return counter.Count
}

// alarms is what pages are told of alarms. The caller holds the hub's lock.
func (r *recorder) alarms() alarms {
	m := alarms{Topic: "alarms", Watched: []string{}, Events: []event{}, All: r.all, Step: r.step}
	for _, a := range r.watched {
		m.Watched = append(m.Watched, a.String())
	}
	for _, e := range r.state.Events[max(0, len(r.state.Events)-maxEvents):] {
		m.Events = append(m.Events, event{e, e.String()})
	}
	m.Raised = r.state.Raised
	if r.counter != nil {
		if err := r.counter.Err(); err != nil {
			m.Uncounted = err.Error()
		}
	}
	return m
}

// alarms is a message about alarms.
type alarms struct {
	Topic   string   `json:"topic"` // "alarms"
	Watched []string `json:"watched"`
	All     bool     `json:"all"`  // of all arrays, and not only of those that are shown
	Step    string   `json:"step"` // the name of the program's count of its steps
	Events  []event  `json:"events"`

	Uncounted string `json:"uncounted,omitempty"` // why no count of steps was known, ever
	Raised    int    `json:"raised"`              // how many there were; events are the last of them
	Refused   string `json:"refused,omitempty"`   // why what the page has asked for is not watched
}

type event struct {
	watch.Event

	Text string `json:"text"`
}
