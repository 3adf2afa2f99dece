package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

const (
	// fastest and slowest are how often an array is read that is not published: slower where nothing changes, and
	// yet often enough that a page shows within a second what happens.
	fastest = 100 * time.Millisecond
	slowest = 400 * time.Millisecond
	// figuresEvery is how often figures follow pictures that come fast: nobody reads them faster.
	figuresEvery = 200 * time.Millisecond
	// pictureEvery is how often a picture is drawn anew of an array whose figures have not changed.
	pictureEvery = 2 * time.Second
	// takePatience is how long the program may take to say what a name means.
	takePatience = 5 * time.Second
)

// reading reads one array for all pages that look at it.
type reading struct {
	hub    *hub
	name   string
	cancel context.CancelFunc
	poked  chan struct{} // there is a new sight, or a wish
	pace   *watch.Pace   // its part of the hub's
	soon   *watch.Pace   // its part of the hub's of figures
	asks   *watch.Pace   // its part of the hub's of what is asked for, but
	fine   *watch.Pace   // of pictures that follow rough ones

	sights map[string]*sight // by what they look at; the hub's lock guards it
	wish   *bool             // to pin, or to drop what is pinned; the hub's lock guards it

	// The rest belongs to the goroutine that runs.
	source  *hostplugin.Source
	view    *core.View
	pinned  *core.View
	unkept  error // why nothing was pinned, though somebody wished so
	ring    ring
	told    time.Time // when figures were read last
	drawn   time.Time // when pictures were drawn last of an array that is not published
	due     bool      // new pictures are, as soon as they are paid for
	paid    time.Time // when the last ones are, if figures take what they may
	rough   bool      // those that are drawn are to come soon
	coarse  bool      // and are to be followed by finer ones
	late    bool      // which are to be paid for first
	waiting time.Duration
	last    stats.Summary
	besides spell           // what a look took that its clocks did not count, less what is counted already
	each    float64         // seconds of the processor that an element of figures took, lately
	known   map[*sight]bool // the sights that have had figures
	shown   uint64          // the version of the newest pictures
	torn    int             // pictures that were not shown, one after the other
	failed  error           // why the view is not what the name means now, if it is not, or nobody knows
	number  string          // the type of the number of Python's own that the name means in place of an array; "": none
	fresh   bool            // the view is the newest version: it came of itself
	asked   bool            // somebody waits for the next look
}

// sight is one way to look at an array, and the pages that look so.
type sight struct {
	of      *reading
	look    look
	clients map[*client]struct{}
	latest  [topics]message
}

func newReading(h *hub, name string) *reading {
	return &reading{
		hub: h, name: name, poked: make(chan struct{}, 1), pace: h.pace.Part(), soon: h.figures.Part(),
		asks: h.asks.Part(), fine: h.fine.Part(),
		sights: map[string]*sight{}, waiting: fastest, known: map[*sight]bool{},
	}
}

// poke has the array read at once.
func (w *reading) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// pin keeps the array as it is, or drops what was kept. The caller holds the hub's lock.
func (w *reading) pin(on bool) {
	w.wish = &on
	w.poke()
}

// run reads until nobody looks any more.
func (w *reading) run(ctx context.Context) {
	defer w.close()
	for w.asked = true; ; {
		if w.asked && w.asks.Wait(ctx, 0) != nil {
			return
		}
		sights := w.looking()
		w.count(func() time.Duration { return w.once(ctx, sights) })
		w.asked = false
		if w.rest(ctx) != nil {
			return
		}
	}
}

// count counts what a look takes, with what it says that it has cost the program. Pictures wait until all is paid for that this process
// has done meanwhile, such as to send others. Figures must not come late because of that, so what counts for them is only the time
// of the thread that makes them. What somebody has asked for is paid in another way, so that it neither waits nor has others wait.
func (w *reading) count(look func() time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.hub.meter.begin(w)
	defer w.hub.meter.end(w)
	w.besides = spell{}
	begun := w.clocks()
	cost := look()
	took := w.clocks().minus(begun).plus(w.besides)
	if w.asked {
		w.asks.Spend(took.all + cost)
		return
	}
	w.pace.Spend(took.all + cost)
	w.soon.Spend(took.own + cost)
}

func (w *reading) close() {
	for _, p := range []*watch.Pace{w.pace, w.soon, w.asks, w.fine} {
		p.Leave()
	}
	if w.view != nil {
		_ = w.view.Close() // the session reports what matters
	}
	if w.pinned != nil {
		w.hub.pins.leave(w.name, w.pinned)
	}
}

// looking gives what is asked for until now.
func (w *reading) looking() []*sight {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	select {
	case <-w.poked: // for what is there by now
		w.asked = true
	default:
	}
	sights := slices.Collect(maps.Values(w.sights))
	maps.DeleteFunc(w.known, func(s *sight, _ bool) bool { return !slices.Contains(sights, s) })
	return sights
}

// wanted reports whether a page still looks so: a page that is opened says how large its picture is just after it has asked for one.
func (w *reading) wanted(s *sight) bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return len(s.clients) > 0
}

// tell gives the pages of a sight its newest message. The next pictures wait until the last ones have been paid for.
func (w *reading) tell(s *sight, t topic, m message) {
	if m.binary {
		m.pays = w.pace
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	s.latest[t] = m
	for c := range s.clients {
		c.out.put(t, m)
	}
}

// once takes the array as it is now, and shows it to everybody. It says what that has cost the program.
func (w *reading) once(ctx context.Context, sights []*sight) (cost time.Duration) {
	begun := time.Now()
	err := w.take(ctx)
	if err == nil {
		cost = watch.CopyingTakes(w.view, time.Since(begun))
	}
	if w.failed = err; err != nil && ctx.Err() != nil {
		return cost
	}
	w.number = w.numberType(ctx)
	if err != nil {
		w.waiting = slowest
	}
	if w.view == nil {
		for _, s := range sights {
			w.tell(s, aboutArray, jsonMessage(w.state()))
		}
		return cost
	}
	w.keep(ctx)
	if w.view.Version() > 0 {
		if w.pictures(ctx, sights) { // else a newer version is there already
			w.figures(ctx, sights)
		}
		return cost
	}
	// Pictures cost most of what a look does. Figures that stay tell that most probably there is no other, and new ones do not wait
	// until a picture is paid for.
	news, asked := w.figures(ctx, sights)
	w.due = w.due || news || time.Since(w.drawn) > pictureEvery
	switch {
	case w.asked || asked:
		w.rough, w.coarse = true, false
		w.paint(ctx, sights)
		w.rough = false
		switch {
		case !w.coarse:
		case len(w.poked) > 0: // something else is waited for by now
		case w.fine.Owed() == 0:
			w.paintFor(ctx, sights, w.fine)
		default:
			w.due, w.late = true, true
		}
	case w.late && w.fine.Owed() == 0:
		w.paintFor(ctx, sights, w.fine)
	case w.due && (w.pace.Owed() == 0 || time.Now().After(w.paid)):
		drew := w.paintFor(ctx, sights, w.pace)
		w.paid = time.Now().Add(time.Duration(drew.Seconds() / (w.pace.Limit() * (1 - figuresShare)) * float64(time.Second)))
	}
	return cost
}

// paintFor draws pictures, for which p pays and nothing else. It says what they took.
func (w *reading) paintFor(ctx context.Context, sights []*sight, p *watch.Pace) time.Duration {
	begun := w.clocks()
	w.paint(ctx, sights)
	drew := w.clocks().minus(begun)
	p.Charge(drew.all)
	w.besides = w.besides.minus(drew)
	return drew.all
}

// paint draws pictures of an array that is not published.
func (w *reading) paint(ctx context.Context, sights []*sight) {
	w.due, w.late, w.drawn = false, false, time.Now()
	w.pictures(ctx, sights)
}

// numberType gives the type of the number of Python's own that has the name, if there is one in place of an array; it is recorded then.
func (w *reading) numberType(ctx context.Context) string {
	if !errors.Is(w.failed, core.ErrUnsupported) {
		return ""
	}
	found, _ := looks.Search(ctx, w.hub.options.Session, contract.Search{Names: []string{w.name}}) // without it, the error says enough
	if len(found.Numbers) == 0 {
		return ""
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.recorder.addNumbers(found.Numbers)
	return found.Numbers[0].Type()
}

// take refreshes the view. What is published is taken in its newest version.
func (w *reading) take(ctx context.Context) (err error) {
	asking, cancel := context.WithTimeout(ctx, takePatience)
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = &core.Error{Op: "refresh", Object: w.name, Kind: core.ErrUnavailable, Err: fmt.Errorf("the program has not answered for %v: it is stopped, or something in it holds Python's lock", takePatience)}
		}
	}()
	if w.source == nil {
		if w.source, err = w.hub.options.Session.Source(w.name); err != nil {
			return err
		}
	}
	if w.fresh {
		w.fresh = false
		w.ring.saw(w.view)
		return w.view.Wait(asking)
	}
	v, _, err := w.source.Refresh(asking, w.view, hostplugin.NoWait(), hostplugin.AllowCopy())
	w.view = v
	if err == nil {
		err = v.Wait(asking)
		w.ring.saw(v)
	}
	return err
}

// rest waits until there is something to read.
func (w *reading) rest(ctx context.Context) error {
	if w.view == nil || w.view.Version() == 0 || w.over() {
		return w.pause(ctx, w.waiting)
	}
	if err := w.pause(ctx, 0); err != nil || w.asked || w.view.Version() != w.shown {
		return err
	}
	// What is published says when it is new. Figures may still be due, of the version that was shown last.
	limit := time.Second
	if due := time.Until(w.told.Add(figuresEvery)); due > 0 && w.behind() {
		limit = due
	}
	next, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var v *core.View
	err := w.unlessPoked(next, func(ctx context.Context) (err error) {
		v, err = w.source.Next(ctx, w.view)
		return err
	})
	w.view = v
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && next.Err() == nil && !w.asked:
		return w.pause(ctx, slowest)
	}
	w.fresh = err == nil
	return nil
}

// behind reports whether the figures are of an older version.
func (w *reading) behind() bool { return w.last.Version != w.view.Version() }

// over reports whether nothing comes any more.
func (w *reading) over() bool {
	select {
	case <-w.hub.options.Session.Done():
		return true
	default:
		return false
	}
}

// pause waits for a time, and longer if the budget demands it, or until it is poked.
func (w *reading) pause(ctx context.Context, least time.Duration) error {
	pace := w.soon
	if w.view != nil && w.view.Version() > 0 { // pictures come first
		pace = w.pace
	}
	err := w.unlessPoked(ctx, func(ctx context.Context) error { return pace.Wait(ctx, least) })
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// unlessPoked calls f with a context that ends when the reading is poked, which is asked then.
func (w *reading) unlessPoked(ctx context.Context, f func(context.Context) error) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := false
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-w.poked:
			asked = true
			cancel()
		case <-waiting.Done():
		}
	})
	err := f(waiting)
	cancel()
	wait.Wait()
	w.asked = w.asked || asked
	return err
}
