package watch

import (
	"testing"

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
