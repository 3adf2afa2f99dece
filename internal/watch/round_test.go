package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestStateStays has a state stay as it was while looks go on, beyond the length of a history.
func TestStateStays(t *testing.T) {
	t.Parallel()
	data := make([]float64, 10)
	s := New(Options{History: 5})
	s.Add(array("x", of(coretest.NewView(t, data))))
	var states []State
	rounds(t, s, 40, func(i int) {
		states = append(states, s.State())
		data[0] = float64(i)
	})
	for looks, state := range states {
		a := state.Arrays[0]
		if len(a.History) != min(looks, 5) {
			t.Fatalf("after %d looks there are %d points", looks, len(a.History))
		}
		for i, p := range a.History {
			if want := looks - len(a.History) + i; float64(p.Max) != float64(want) {
				t.Errorf("after %d looks point %d is %v, want %d", looks, i, p.Max, want)
			}
		}
	}
	if n := cap(s.State().Arrays[0].History); n > 4*5 {
		t.Errorf("there is room for %d points", n)
	}
}

// TestLooksTogether asks each program once for many of its arrays, and for few of those that it has to copy, or that take long to sum up.
func TestLooksTogether(t *testing.T) {
	t.Parallel()
	shared, memory := coretest.NewView(t, []float32{1}), make([]byte, 1<<19)
	copied, err := core.NewView(coretest.NewView(t, memory).Layout(), coretest.NewMemory(memory), &core.ViewOptions{Reason: "below-threshold"})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	one, other := each{1}, each{2}
	several := func(n int, p Program, v *core.View, took time.Duration) []*watched {
		return slices.Repeat([]*watched{{program: p, view: v, figures: took}}, n)
	}
	for name, c := range map[string]struct {
		arrays []*watched
		want   []int
	}{
		"shared":     {several(150, one, shared, time.Microsecond), []int{64, 64, 22}},
		"copied":     {several(5, one, copied, time.Microsecond), []int{2, 2, 1}},
		"unknown":    {several(10, one, nil, 0), []int{8, 2}},
		"slow":       {several(5, one, shared, mostSummed/2), []int{2, 2, 1}},
		"very slow":  {several(2, one, shared, 2*mostSummed), []int{1, 1}},
		"of two":     {slices.Concat(several(3, one, shared, 0), several(70, other, shared, 0)), []int{3, 64, 6}},
		"of several": {slices.Concat(several(1, one, shared, 0), several(1, other, nil, 0), several(1, one, copied, 0)), []int{1, 1, 1}},
	} {
		var got []int
		for left := c.arrays; len(left) > 0; left = left[got[len(got)-1]:] {
			got = append(got, together(left))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
