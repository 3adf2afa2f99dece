package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// racer looks at the arrays of a race.
type racer struct {
	t        *testing.T
	names    []raced
	counters counters
	session  *hostplugin.Session
	end      time.Time
	versions bool // the session has them

	mu     sync.Mutex
	routes map[string]int // how many views came by each
	wrongs int
}

func (r *racer) generations() map[string]int64 {
	all := map[string]int64{}
	for i, n := range r.names {
		all[n.name] = r.counters.done(i + 1)
	}
	return all
}

// heldView is a view that a worker goes on holding.
type heldView struct {
	view *core.View
	of   int
	then contents
}

// work looks, keeps some of the views, and looks at those again.
func (r *racer) work(ctx context.Context, rng *rand.Rand) {
	all := lookers(r.session, false, nil)
	if r.versions {
		all = append(all, newLatestLooker(r.session, nil), newNextLooker(r.session, nil))
	}
	defer func() {
		for _, l := range all {
			l.reset()
		}
	}()
	together := r.together()
	defer together.reset()
	var held [6]*heldView
	buf := make([]byte, 4<<20)
	for time.Now().Before(r.end) && !r.failed() {
		of := rng.IntN(len(r.names))
		if r.names[of].name == "" {
			continue
		}
		slot := rng.IntN(3 * len(held))
		if slot < len(held) && held[slot] != nil {
			r.check(r.again(held[slot], buf), "held "+r.names[held[slot].of].name, held[slot].view)
			r.check(r.live(held[slot].of, held[slot].view, buf), "live "+r.names[held[slot].of].name, held[slot].view)
			held[slot].view.Close()
			held[slot] = nil
		}
		if rng.IntN(4) == 0 {
			r.allAtOnce(ctx, together, buf)
			continue
		}
		l := all[rng.IntN(len(all))]
		if follows := l.name() == "Source.Latest" || l.name() == "Source.Next"; follows && !r.names[of].versions {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, answerBound)
		low := r.counters.done(of + 1)
		l.look(bounded, []string{r.names[of].name}, "-", func(_ int, v *core.View, err error) bool {
			then, err := r.judge(of, low, v, err, buf)
			if err == nil && v != nil {
				err = r.live(of, v, buf)
			}
			r.check(err, l.name()+" of "+r.names[of].name, v)
			if err != nil || v == nil || slot >= len(held) || !l.gives() {
				return false
			}
			held[slot] = &heldView{v, of, then}
			return true
		})
		cancel()
	}
	for _, h := range held {
		if h != nil {
			r.check(r.again(h, buf), "held "+r.names[h.of].name, h.view)
			h.view.Close()
		}
	}
}

// quickly is less than the time for which View.Live waits for an answer before it says what was known last.
const quickly = 10 * time.Millisecond

// live holds that a view which is reported live shows what its name leads to now.
func (r *racer) live(of int, v *core.View, buf []byte) error {
	low, begin := r.counters.done(of+1), time.Now()
	if !v.Live() || time.Since(begin) > quickly {
		return nil
	}
	if v.Copied() {
		return errors.New("a copy is live")
	}
	if c, err := r.contents(r.names[of], of, v, buf); err != nil || int64(c.newest) < low {
		return fmt.Errorf("is live, and shows generations %d to %d; the program is at %d: %w", c.oldest, c.newest, low, err)
	}
	return nil
}

// together is the route for all names that are published at once, or else for all names.
func (r *racer) together() *groupLooker {
	return &groupLooker{session: r.session, next: r.versions && r.published() != nil}
}

// published gives the names that one call publishes, each time.
func (r *racer) published() (names []string) {
	for _, n := range r.names {
		if n.together {
			names = append(names, n.name)
		}
	}
	return names
}

// allAtOnce looks at several names. Those that are published at once are of one generation.
func (r *racer) allAtOnce(ctx context.Context, l *groupLooker, buf []byte) {
	var names []string
	var numbers []int
	for i, n := range r.names {
		if n.name != "" && !n.absent && !n.dead && (n.together || !l.next) {
			names, numbers = append(names, n.name), append(numbers, i)
		}
	}
	if names == nil {
		return
	}
	var low []int64
	for _, of := range numbers {
		low = append(low, r.counters.done(of+1))
	}
	bounded, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	var first *core.View
	l.look(bounded, names, "-", func(i int, v *core.View, err error) bool {
		_, err = r.judge(numbers[i], low[i], v, err, buf)
		if err == nil && l.next {
			if first == nil {
				first = v
			} else if v.Version() != first.Version() {
				err = fmt.Errorf("version %d beside version %d of %s", v.Version(), first.Version(), first.Name())
			}
		}
		r.check(err, l.name()+" of "+names[i], v)
		return false
	})
}

func (r *racer) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrongs > 4
}

func (r *racer) check(err error, what string, v *core.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := "no view"
	if v != nil {
		text = fmt.Sprintf("%v %v %s by %v (%v)", v.Layout().DType(), v.Layout().Shape(), v.Layout().Tag(), v.Route(), v.Reason())
		r.routes[string(v.Route())]++
	}
	if err != nil {
		r.wrongs++
		r.t.Errorf("%s: %v; %s", what, err, text)
	}
}

// judge says what is wrong with a new view. low is the generation that had been there before it was asked for.
func (r *racer) judge(of int, low int64, v *core.View, err error, buf []byte) (c contents, wrong error) {
	n := r.names[of]
	if err != nil {
		if n.absent && errors.Is(err, core.ErrNotFound) || n.dead && !errors.Is(err, core.ErrUnavailable) {
			return c, nil
		}
		return c, err
	}
	high := r.counters.begun(of + 1)
	c, err = r.contents(n, of, v, buf)
	if err != nil {
		return c, err
	}
	if n.inPlace && !v.Copied() {
		high = r.counters.begun(of + 1)
	} else if c.mixed {
		return c, fmt.Errorf("mixed of generations %d to %d", c.oldest, c.newest)
	}
	if c.zeros > 0 && !n.zeros {
		return c, fmt.Errorf("%d words are zero", c.zeros)
	}
	if int64(c.oldest) < low || int64(c.newest) > high {
		return c, fmt.Errorf("generations %d to %d, while the program went from %d to %d", c.oldest, c.newest, low, high)
	}
	if !n.fixed {
		return c, layoutOf(c.oldest, n.flat).is(v.Layout())
	}
	return c, nil
}

func (r *racer) contents(n raced, of int, v *core.View, buf []byte) (contents, error) {
	if v.Layout().NBytes() > int64(len(buf)) {
		return contents{}, fmt.Errorf("%d bytes", v.Layout().NBytes())
	}
	size, err := core.CopyBytes(context.Background(), buf, v)
	if err != nil {
		return contents{}, err
	}
	if n.odd {
		size = size / 8 * 8
	}
	return read(buf[:size], of+1, n.narrow)
}

// again says what is wrong with a view that was taken before: it shows what it showed, but for memory that is
// written in place, which is still that name's.
func (r *racer) again(h *heldView, buf []byte) error {
	n := r.names[h.of]
	now, err := r.contents(n, h.of, h.view, buf)
	if err != nil {
		return err
	}
	if (!n.inPlace || h.view.Copied()) && now != h.then {
		return fmt.Errorf("shows generations %d to %d, was %d to %d", now.oldest, now.newest, h.then.oldest, h.then.newest)
	}
	return nil
}

// racedLayout is what follows from a generation, as in race.py.
type racedLayout struct {
	dtype string
	shape []int
}

func layoutOf(generation uint32, flat bool) racedLayout {
	size := []int{512, 4096, 65536, 81920, 1 << 20}[generation%5]
	kind := generation % 8
	dtype := []string{"float64", "int64", "uint8", "complex128", "float32", "int16", "opaque[8]", "float64"}[kind]
	if flat && kind == 6 {
		dtype = "float64"
	}
	n := size / []int{8, 8, 1, 16, 4, 2, 8, 8}[kind]
	switch {
	case flat:
		return racedLayout{dtype, []int{n}}
	case kind == 1, kind == 3:
		return racedLayout{dtype, []int{16, n / 16}}
	default:
		return racedLayout{dtype, []int{n}}
	}
}

func (l racedLayout) is(of core.Layout) error {
	if of.DType().String() != l.dtype || !slices.Equal(of.Shape(), l.shape) {
		return errors.New("the elements say " + l.dtype + " " + strconv.Itoa(len(l.shape)) + " axes " + fmt.Sprint(l.shape))
	}
	return nil
}
