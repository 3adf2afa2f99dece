package watch

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestTries counts looks at what is there and cannot be summed up, and none at what is not there.
func TestTries(t *testing.T) {
	t.Parallel()
	fails := func(err error) looking {
		return func(context.Context, *core.View) (*core.View, error) { return nil, err }
	}
	s := New(Options{})
	s.Add(
		array("a", of(coretest.NewView(t, []float64{1}))), array("late", fails(&core.Error{Kind: core.ErrNotFound})),
		array("text", fails(&core.Error{Kind: core.ErrDType})),
	)
	rounds(t, s, 3, func(int) {})
	for i, want := range []struct{ looks, tries int }{{3, 3}, {0, 0}, {0, 3}} {
		if a := s.State().Arrays[i]; a.Looks != want.looks || a.Tries != want.tries {
			t.Errorf("%s: %d looks of %d, want %+v", a.Name, a.Looks, a.Tries, want)
		}
	}
}

// TestPassingArraysAreGivenUp loses one array that may go, and one that may not.
func TestPassingArraysAreGivenUp(t *testing.T) {
	t.Parallel()
	there := true
	look := func(ctx context.Context, w *core.View) (*core.View, error) {
		if !there {
			return w, &core.Error{Kind: core.ErrNotFound}
		}
		return of(coretest.NewView(t, []float64{1}))(ctx, w)
	}
	s := New(Options{})
	s.Add(array("named", look), Array{Name: "passing", Program: each{}, Of: looking(look), Passing: true})
	count := func(n int) int {
		rounds(t, s, n, func(int) {})
		return len(s.State().Arrays)
	}
	there = false
	early := count(givenUp - 1)
	there = true
	again := count(1)
	there = false
	if late, gone := count(givenUp-1), count(1); early != 2 || again != 2 || late != 2 || gone != 1 || s.State().Arrays[0].Name != "named" {
		t.Errorf("%d, %d, %d and then %d arrays", early, again, late, gone)
	}
}

// TestCopyingTakes counts the bytes that there are, and not those that NumPy's broadcast_to makes of them, nor time that nobody has waited.
func TestCopyingTakes(t *testing.T) {
	t.Parallel()
	const waited = 3 * time.Millisecond
	for name, c := range map[string]struct {
		reason        core.Reason
		shape, stride int
		want          time.Duration
	}{
		"shared":    {"", 1 << 23, 1, 0},
		"small":     {"below-threshold", 1000, 1, 51 * time.Microsecond},
		"broadcast": {"below-threshold", 1 << 50, 0, 50*time.Microsecond + 1},
		"long":      {"below-threshold", 1 << 23, 1, waited},
	} {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{c.shape}, Strides: []int{c.stride}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := core.NewView(l, coretest.NewMemory(make([]byte, 1<<23)), &core.ViewOptions{Reason: c.reason})
		if err != nil {
			t.Fatal(err)
		}
		if took := CopyingTakes(v, waited); took != c.want {
			t.Errorf("%s: %v, want %v", name, took, c.want)
		}
		_ = v.Close() // memory of this process
	}
}

// TestSpent counts what reading takes, but no time in which it waits for the program's GPU.
func TestSpent(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Device: core.Device{Kind: core.CUDA}, Shape: []int{1000}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(make([]byte, 1000)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for of, f := range map[string]func(){
		"a wait": func() { time.Sleep(100 * time.Millisecond) },
		"work": func() {
			begun := Clock(unix.CLOCK_THREAD_CPUTIME_ID)
			for now := begun; now-begun < 10*time.Millisecond; now = Clock(unix.CLOCK_THREAD_CPUTIME_ID) {
				runtime.Gosched()
			}
		},
	} {
		took, err := spent(v, func() error {
			f()
			return nil
		})
		if works := took >= 10*time.Millisecond; err != nil || works != (of == "work") || took < 51*time.Microsecond {
			t.Errorf("%s took %v: %v", of, took, err)
		}
	}
	_ = v.Close() // memory of this process
}

// TestRemove watches an array no longer, lets its view go, and watches it again.
func TestRemove(t *testing.T) {
	t.Parallel()
	var views []*core.View
	look := func(_ context.Context, w *core.View) (*core.View, error) {
		if w == nil {
			views = append(views, coretest.NewView(t, []float64{1}))
			w = views[len(views)-1]
		}
		return w, nil
	}
	s := New(Options{})
	s.Add(array("a", look), array("b", look))
	round := func() {
		t.Helper()
		if _, err := s.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	s.Remove("a", "other")
	if a := s.State().Arrays; len(a) != 1 || a[0].Name != "b" {
		t.Errorf("%d arrays are left", len(a))
	}
	round()
	if _, err := views[0].Bytes(); err == nil {
		t.Error("the view of what is not watched any more is open")
	}
	s.Add(array("a", look))
	round()
	if a := s.State().Arrays; len(a) != 2 || a[0].Looks != 1 || a[1].Looks != 3 {
		t.Errorf("%+v", a)
	}
	s.close()
	for _, v := range views {
		if _, err := v.Bytes(); err == nil {
			t.Error("a view is open at the end")
		}
	}
}

// TestLasting has one array be there at each look, one not at all, and one at every other look, and later always.
func TestLasting(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float32{1})
	round := 0
	s := New(Options{})
	s.Add(array("always", of(v)), array("never", func(context.Context, *core.View) (*core.View, error) { return nil, core.ErrNotFound }),
		array("passing", func(context.Context, *core.View) (*core.View, error) {
			if round < 10 && round%2 == 1 {
				return nil, core.ErrNotFound
			}
			return v.Transpose()
		}))
	for ; round < 10+4*givenUp; round++ {
		rounds(t, s, 1, func(int) {})
		l := s.Lasting()
		if _, ok := l["never"]; !ok || l["never"] || l["always"] != (round > 0) || round > 2 && l["passing"] != (round >= 9+4*givenUp) {
			t.Errorf("round %d: %v", round, l)
		}
	}
}
