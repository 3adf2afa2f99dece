package inspect

import "time"

// maxPointsKept is how many points of a series are kept: minutes, for what changes often.
const maxPointsKept = 1200

// series is values over time, the newest of them.
type series struct {
	times  []float64   // in seconds
	values [][]float64 // of each line
	before uint64      // how many points were dropped
}

// add appends a point. Old ones are dropped, many at a time.
func (s *series) add(at time.Time, values ...float64) {
	if len(s.times) >= 2*maxPointsKept {
		cut := len(s.times) - maxPointsKept
		s.before += uint64(cut) //nolint:gosec // positive
		s.times = append([]float64(nil), s.times[cut:]...)
		for i := range s.values {
			s.values[i] = append([]float64(nil), s.values[i][cut:]...)
		}
	}
	if s.values == nil {
		s.values = make([][]float64, len(values))
	}
	s.times = append(s.times, float64(at.UnixMilli())/1000)
	for i, x := range values {
		s.values[i] = append(s.values[i], x)
	}
}

// since gives the points behind the first seen ones, and how many there were in all.
func (s *series) since(seen uint64) (points, uint64) {
	all := s.before + uint64(len(s.times))
	from := len(s.times) - maxPointsKept
	if seen > s.before {
		from = max(from, int(seen-s.before)) //nolint:gosec // at most what is there
	}
	from = max(from, 0)
	p := points{Reset: seen == 0, Times: s.times[from:], Values: make([][]number, len(s.values))}
	for i, xs := range s.values {
		p.Values[i] = numbersOf(xs[from:])
	}
	p.Times = append([]float64{}, p.Times...)
	return p, all
}

// points are new ones of a series.
type points struct {
	Name   string     `json:"name"`
	Reset  bool       `json:"reset"` // they are all there are
	Times  []float64  `json:"times"`
	Values [][]number `json:"values"`
}

// history is a message about the history of an array.
type history struct {
	Topic string `json:"topic"` // "history"
	points
}

// scalars is a message about all scalars.
type scalars struct {
	Topic  string   `json:"topic"` // "scalars"
	Series []points `json:"series"`
}

// record adds to an array's history what pages are told.
func (h *hub) record(w *watch, at time.Time, values ...float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.histories[w.name]
	if s == nil {
		if len(h.histories) >= maxHistories {
			clear(h.histories)
		}
		s = &series{}
		h.histories[w.name] = s
	}
	s.add(at, values...)
	for _, sight := range w.sights {
		for c := range sight.clients {
			h.offerHistory(c, w.name)
		}
	}
}

// maxHistories is how many arrays have a history.
const maxHistories = 512

// offerHistory has a page told what is new of a history. The caller holds the lock.
func (h *hub) offerHistory(c *client, name string) {
	if h.histories[name] == nil {
		return
	}
	c.out.lazy(aboutHistory, func() (message, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		s := h.histories[name]
		if s == nil || c.sees == nil || c.sees.watch.name != name {
			return message{}, false
		}
		p, all := s.since(c.history)
		c.history = all
		p.Name = name
		return jsonMessage(history{"history", p}), len(p.Times) > 0
	})
}

// offerScalars has a page told what is new of all scalars. The caller holds the lock.
func (h *hub) offerScalars(c *client) {
	c.out.lazy(aboutScalars, func() (message, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		m := scalars{Topic: "scalars"}
		for _, name := range h.scalarNames {
			s := h.scalars[name]
			if s == nil {
				continue
			}
			p, all := s.since(c.scalars[name])
			c.scalars[name] = all
			p.Name = name
			if len(p.Times) > 0 {
				m.Series = append(m.Series, p)
			}
		}
		return jsonMessage(m), len(m.Series) > 0
	})
}
