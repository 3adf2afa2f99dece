package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	data := make([]float64, 10)
	s := New(Options{History: 5})
	s.Add(array("x", of(coretest.NewView(t, data))))
	rounds(t, s, 9, func(i int) { data[0] = float64(i) })
	a := s.State().Arrays[0]
	if len(a.History) != 5 || a.Looks != 9 || float64(a.History[0].Max) != 4 || float64(a.History[4].Max) != 8 {
		t.Errorf("%d looks, of which %d: %+v", a.Looks, len(a.History), a.History)
	}
	if rate := a.Rate(func(p Point) stats.Number { return p.Max }); !(rate > 0) {
		t.Errorf("rate %v", rate)
	}
	rounds(t, s, 2, func(int) {})
	a = s.State().Arrays[0]
	a.History[3].Max-- // as if it had been another sample
	if rate := a.Rate(func(p Point) stats.Number { return p.Max }); rate != 0 {
		t.Errorf("rate %v of what has not changed", rate)
	}
}

// TestMappingIsNotLearned: a first look at a view, which maps its pages, does not decide about the next ones; unless all looks are first ones.
func TestMappingIsNotLearned(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.Add(array("x", of(coretest.NewView(t, make([]float32, 1<<16)))))
	w := s.arrays[0]
	for i, look := range []struct {
		view          *core.View
		figures, each time.Duration // each is of all elements, as it is learned
	}{
		{coretest.NewView(t, []byte{0}), time.Second, 0},
		{nil, 20 * time.Microsecond, 20 * time.Microsecond},
		{coretest.NewView(t, []byte{1}), time.Second, 20 * time.Microsecond},
		{coretest.NewView(t, []byte{2}), time.Second, 250 * time.Millisecond},
	} {
		if look.view != nil {
			w.view = look.view
		}
		w.figures = look.figures
		s.adjust(w, &stats.Summary{Len: 1 << 16, Seen: 1 << 16})
		each := time.Duration(w.perPiece[1] * (1 << 16) * float64(time.Second))
		if each.Round(time.Millisecond) != look.each.Round(time.Millisecond) || w.sample != 0 && w.sample != 1<<16 {
			t.Errorf("after look %d: %v for all, the next look samples %d", i, each, w.sample)
		}
	}
}

// TestLooksAreNamed calls a look by its name, and not by that of what was called for it.
func TestLooksAreNamed(t *testing.T) {
	t.Parallel()
	refresh := &core.Error{Op: "refresh", Object: "x", Kind: core.ErrDType, Err: errors.New("long doubles")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{refresh, "look at x: wrong dtype: long doubles"},
		{fmt.Errorf("again: %w", refresh), "again: look at x: wrong dtype: long doubles"},
		{&core.Error{Op: "stats", Kind: core.ErrDType, Err: errors.New("refresh x")}, "stats: wrong dtype: refresh x"},
		{errors.New("refresh"), "refresh"},
	} {
		s := New(Options{})
		s.Add(array("x", func(context.Context, *core.View) (*core.View, error) { return nil, c.err }))
		rounds(t, s, 1, func(int) {})
		if got := s.State().Arrays[0].Error; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
