package inspect

import (
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// looked is what pages are told of the arrays that are looked at, beside what the tree has of all.
type looked struct {
	Topic  string     `json:"topic"` // "looks"
	Arrays []lookedAt `json:"arrays"`
}

// lookedAt is one of them.
type lookedAt struct {
	Name     string       `json:"name"`
	Error    string       `json:"error,omitempty"` // of the last look, if it failed; the rest is of the last one that did not
	Route    string       `json:"route"`
	Reason   string       `json:"reason,omitempty"` // why it is copied
	Rate     stats.Number `json:"rate"`             // how fast the mean changes, per second
	Versions stats.Number `json:"versions"`         // that the program publishes, per second
}

// looks says how the last looks at arrays were, while there are pages. The caller holds the hub's lock.
func (r *recorder) looks() looked {
	m := looked{Topic: "looks", Arrays: []lookedAt{}}
	if len(r.hub.clients) == 0 {
		return m
	}
	for _, s := range r.state.Arrays {
		// What the recorder has forgotten is in its last state still, and what has just come to be shown again has not been looked at yet.
		if shown := r.shown[s.Name]; shown == nil || !shown.Load() || s.Number || s.Route == "" || s.Error == errNotShown.Error() {
			continue
		}
		m.Arrays = append(m.Arrays, lookedAt{
			Name: s.Name, Error: s.Error, Route: string(s.Route), Reason: string(s.Reason), Rate: rateOf(&s), Versions: versionsOf(&s),
		})
	}
	return m
}

// rateOf is how fast the mean changes, per second.
func rateOf(s *watch.Series) stats.Number {
	return stats.Number(s.Rate(func(p watch.Point) stats.Number { return p.Mean }))
}

// versionsOf is how many versions the program publishes, per second.
func versionsOf(s *watch.Series) stats.Number {
	return stats.Number(s.Rate(func(p watch.Point) stats.Number { return stats.Number(p.Version) }))
}
