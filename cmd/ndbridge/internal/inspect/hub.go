package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// hub knows the pages and what they look at.
type hub struct {
	options *Options
	pace    *watch.Pace // of all that is read for pages
	figures *watch.Pace // of figures, which do not wait until pictures are paid for
	asks    *watch.Pace // of what pages ask for, such as another part of a picture, but for
	fine    *watch.Pace // the pictures that follow rough ones
	meter   meter
	pins    pins
	wake    chan struct{} // somebody came

	mu       sync.Mutex
	state    programState
	clients  map[*client]struct{}
	latest   [topics]message // of what all pages get
	readings map[string]*reading
	recorder *recorder
	alive    context.Context //nolint:containedctx // of readings; nil before start, and from wait on
	running  sync.WaitGroup

	found contract.Found // all arrays, as list has found them last
	stay  lingering
	again time.Time // when it looks for them again
}

// programState is what pages are told of the program.
type programState struct {
	Topic    string `json:"topic"` // "program"
	Name     string `json:"name"`
	Attached bool   `json:"attached"`
	State    string `json:"state"`  // "running", "ended" (its script has), "gone", or "left" (the server ends)
	Detail   string `json:"detail"` // why
	Python   string `json:"python"`
	PID      int    `json:"pid"`
}

func newHub(o *Options) *hub {
	h := &hub{
		options: o, pace: watch.NewPace(o.Budget, credit), figures: watch.NewPace(o.Budget, credit),
		asks: watch.NewPace(askedShare*o.Budget, askedCredit), fine: watch.NewPace(askedShare*o.Budget, askedCredit), wake: make(chan struct{}, 1),
		clients: map[*client]struct{}{}, readings: map[string]*reading{}, pins: pins{most: maxPinned},
		state: programState{Topic: "program", Name: o.Program, Attached: o.Attached, State: "running"},
	}
	h.recorder = newRecorder(h, o)
	h.recorder.divide()
	h.latest[aboutProgram] = jsonMessage(h.state)
	h.latest[aboutAlarms] = jsonMessage(h.recorder.alarms())
	return h
}

// jsonMessage writes what never fails to be written.
func jsonMessage(v any) message {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return message{bytes: text}
}

// start lists arrays, and reads those that somebody looks at, until ctx ends. What a page asks for before is lost.
func (h *hub) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = ctx
	h.running.Go(func() { h.follow(ctx) })
	h.running.Go(func() { h.report(ctx) })
	h.running.Go(func() { _ = h.recorder.sampler.Run(ctx) }) // its error is that of ctx
	h.running.Go(func() { h.list(ctx) })
}

// wait waits until all that start has begun has ended: its context has.
func (h *hub) wait() {
	h.mu.Lock()
	h.alive = nil
	h.mu.Unlock()
	h.running.Wait()
	h.pins.close()
}

// follow tells when the script has ended well: its arrays stay.
func (h *hub) follow(ctx context.Context) {
	if info, err := h.options.Session.Info(ctx); err == nil {
		h.change(func(s *programState) { s.PID, s.Python = info.PID, info.Interpreter })
	}
	if h.options.Attached {
		return
	}
	if err := h.options.Session.Wait(ctx); err == nil {
		h.change(func(s *programState) { s.State = "ended" })
	}
}

// gone tells that the program is no more, and why.
func (h *hub) gone(err error) {
	h.change(func(s *programState) {
		s.State = "gone"
		if err != nil {
			s.Detail = err.Error()
		}
	})
}

// ended tells that the server ends.
func (h *hub) ended(why string) {
	h.change(func(s *programState) { s.State, s.Detail = "left", why })
}

func (h *hub) change(f func(*programState)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.state)
	h.tell(aboutProgram, jsonMessage(h.state))
}

// tell gives all pages a message. The caller holds the lock.
func (h *hub) tell(t topic, m message) {
	h.latest[t] = m
	for c := range h.clients {
		c.out.put(t, m)
	}
}

// join tells a new page what all know.
func (h *hub) join(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients[c] = struct{}{}
	for t, m := range h.latest {
		if m.bytes != nil {
			c.out.put(topic(t), m)
		}
	}
	h.offerPast(c)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
	h.unsee(c)
	if c.search != nil {
		c.search()
	}
}

// ask does what a page asks for. An error says that it asked for what no page of ours does.
func (h *hub) ask(c *client, r request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Pin != nil:
		if c.sees == nil {
			return errors.New("nothing to pin")
		}
		c.sees.of.pin(*r.Pin)
		return nil
	case r.Find != nil:
		return h.find(c, *r.Find)
	case r.Alarms != nil:
		return h.recorder.watch(c, *r.Alarms)
	case r.Look == nil:
		h.unsee(c)
		return nil
	}
	if err := r.Look.check(); err != nil {
		return err
	}
	h.see(c, *r.Look)
	return nil
}

// see lets a page look at an array. The caller holds the lock.
func (h *hub) see(c *client, l look) {
	if c.sees != nil && c.sees.look.key() == l.key() {
		return
	}
	before := c.sees
	w := h.readings[l.Name]
	if w == nil {
		if h.alive == nil {
			return // the program is gone, or the server ends
		}
		w = newReading(h, l.Name)
		h.readings[l.Name] = w
		h.recorder.divide()
		ctx, cancel := context.WithCancel(h.alive)
		w.cancel = cancel
		h.running.Go(func() { w.run(ctx) })
	}
	s := w.sights[l.key()]
	if s == nil {
		s = &sight{of: w, look: l, clients: map[*client]struct{}{}}
		w.sights[l.key()] = s
	}
	c.sees = s
	s.clients[c] = struct{}{}
	h.forget(c, before)
	c.out.drop(aboutArray, aboutPicture, aboutHistory)
	for t, m := range s.latest {
		if m.bytes != nil {
			c.out.put(topic(t), m)
		}
	}
	if before == nil || before.of != w {
		delete(c.has, w.name)
	}
	h.recorder.sees(w.name, true)
	h.offerPast(c)
	w.poke()
}

// unsee lets a page look at nothing. The caller holds the lock.
func (h *hub) unsee(c *client) {
	before := c.sees
	c.sees = nil
	h.forget(c, before)
	c.out.drop(aboutArray, aboutPicture, aboutHistory)
}

// forget ends what no page sees any more.
func (h *hub) forget(c *client, s *sight) {
	if s == nil || s == c.sees {
		return
	}
	if c.sees == nil || c.sees.of != s.of {
		delete(c.has, s.of.name) // what it has of its history is not shown among the scalars
	}
	delete(s.clients, c)
	if len(s.clients) > 0 {
		return
	}
	w := s.of
	delete(w.sights, s.look.key())
	if len(w.sights) == 0 {
		w.cancel()
		delete(h.readings, w.name)
		h.recorder.divide()
		h.recorder.sees(w.name, false)
	}
}

const (
	listEvery   = time.Second
	listRest    = 20  // how many times as long as a list of variables took nobody asks for another
	searchRest  = 100 // the same of a list of all arrays that variables lead to
	reportEvery = time.Second
)

// list lists the program's arrays again and again, while somebody looks or alarms are of all arrays.
func (h *hub) list(ctx context.Context) {
	for {
		h.mu.Lock()
		idle := len(h.clients) == 0 && !h.recorder.all
		h.mu.Unlock()
		if idle {
			select {
			case <-h.wake:
			case <-ctx.Done():
				return
			}
		}
		begun := time.Now()
		h.listOnce(ctx)
		select {
		case <-time.After(h.options.often(max(listEvery, listRest*time.Since(begun)))):
		case <-ctx.Done():
			return
		}
	}
}

func (h *hub) listOnce(ctx context.Context) {
	t := tree{Topic: "tree", Entries: []entry{}}
	variables, err := looks.Variables(ctx, h.options.Session)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, core.ErrUnavailable) {
			return // the page is told in another way
		}
		t.Error = err.Error()
	}
	if begun := time.Now(); err == nil && !begun.Before(h.again) {
		found, failed := looks.Search(ctx, h.options.Session, contract.Search{Pattern: names.Every, Limit: maxFound, Numbers: true})
		if failed == nil { // else there are the variables
			h.found = found
		}
		h.again = time.Now().Add(h.options.often(max(listEvery, searchRest*time.Since(begun))))
	}
	all := looks.Join(h.found, variables, maxFound)
	all.Entries = h.stay.with(all, time.Now())
	for _, e := range all.Entries {
		t.Entries = append(t.Entries, entryOf(e))
	}
	for _, n := range all.Numbers {
		t.Entries = append(t.Entries, entryOfNumber(n))
	}
	t.More, t.Partial = all.More, all.Partial
	m := jsonMessage(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorder.listed(variables, all)
	if string(h.latest[aboutTree].bytes) != string(m.bytes) {
		h.tell(aboutTree, m)
	}
}

// budget is what pages are told of what reading costs.
type budget struct {
	Topic   string  `json:"topic"` // "budget"
	Share   float64 `json:"share"` // of one core's time, lately
	Limit   float64 `json:"limit"`
	Pages   int     `json:"pages"`
	Arrays  int     `json:"arrays"` // that are read
	Reads   float64 `json:"reads"`  // a second
	Waiting bool    `json:"waiting"`
}

// report tells what reading costs.
func (h *hub) report(ctx context.Context) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		read, asked, fine := h.pace.Spent(), h.asks.Spent(), h.fine.Spent()
		h.mu.Lock()
		b := budget{
			Topic: "budget", Share: read.Share + asked.Share + fine.Share + h.recorder.state.Usage.Share, Limit: h.options.Budget,
			Pages: len(h.clients), Arrays: len(h.readings), Reads: read.Reads + asked.Reads, Waiting: read.Delayed || asked.Delayed,
		}
		h.tell(aboutBudget, jsonMessage(b))
		if m := jsonMessage(h.recorder.looks()); string(m.bytes) != string(h.latest[aboutLooks].bytes) {
			h.tell(aboutLooks, m)
		}
		h.mu.Unlock()
	}
}

// tree is the list of arrays and numbers.
type tree struct {
	Topic   string  `json:"topic"` // "tree"
	Entries []entry `json:"entries"`
	More    int     `json:"more"`    // others
	Partial bool    `json:"partial"` // not all was looked through
	Error   string  `json:"error,omitempty"`
}

// entry is one of them.
type entry struct {
	Name      string   `json:"name"`
	Parts     []string `json:"parts"` // what it is below
	DType     string   `json:"dtype"`
	Shape     []int    `json:"shape"`
	NBytes    int64    `json:"nbytes"`
	Device    string   `json:"device"`
	Framework string   `json:"framework"`
	Number    bool     `json:"number,omitempty"` // of Python's own, with its type as DType. Its value is told as those of scalars are
	Published bool     `json:"published,omitempty"`
	ReadOnly  bool     `json:"read_only,omitempty"`
	Route     string   `json:"route,omitempty"`  // how its memory would be reached, if a search has found it
	Reason    string   `json:"reason,omitempty"` // why it would be copied
	Error     string   `json:"error,omitempty"`
}

func entryOf(e contract.Entry) entry {
	n := entry{Name: e.Name, Parts: partsOf(e.Name, e.Published), Framework: e.Framework, Published: e.Published, Shape: []int{}}
	if e.Err != nil {
		n.Error = e.Err.Error()
		return n
	}
	n.DType, n.Shape, n.NBytes = dtypeOf(e.Layout), e.Layout.Shape(), e.Layout.NBytes()
	n.Device, n.ReadOnly, n.Route, n.Reason = e.Layout.Device().String(), e.Layout.ReadOnly(), string(e.Route), string(e.Reason)
	return n
}

func entryOfNumber(n contract.Number) entry {
	return entry{Name: n.Name, Parts: partsOf(n.Name, false), Number: true, DType: n.Type(), Shape: []int{}, Framework: "Python"}
}
