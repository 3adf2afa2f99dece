//go:build cuda

package kernels

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// sequence makes a view of the numbers 0, 1, 2, ... in memory of the first GPU.
func sequence(t *testing.T, n int) *core.View {
	t.Helper()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{n}, Device: core.Device{Kind: core.CUDA}})
	if err != nil {
		t.Fatal(err)
	}
	importer := imports.New(nil)
	own, f, err := importer.Own(0, int64(n))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := own.Memory(func() {})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, memory, &core.ViewOptions{Name: "sequence", Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(v.Close(), f.Close(), own.Close(), importer.Close()); err != nil {
			t.Error(err)
		}
	})
	numbers := make([]byte, n)
	for i := range numbers {
		numbers[i] = byte(i)
	}
	if _, err := core.Put(t.Context(), v, numbers); err != nil {
		t.Fatal(err)
	}
	return v
}

func jobOf(v *core.View) *Job {
	return &Job{From: Walker{View: v, Axes: []Axis{{v.Len(), 1}}}, Total: v.Len(), Scale: 1}
}

// TestTogether has one turn do all jobs that were asked for, of every kind, as far as there is memory for them. Of one that cannot be
// done only its own caller hears.
func TestTogether(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	v, closed := sequence(t, 200), sequence(t, 10)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := []func(*Job){
		func(*Job) {},
		func(j *Job) { j.Count = true },
		func(j *Job) { j.Count, j.Edges, j.BinScale, j.Wrong = true, []float64{0, 50, 100}, 2.0/100, 1e-9 },
		func(j *Job) { j.Patterns = true },
		func(j *Job) { j.From = Walker{View: closed, Axes: []Axis{{10, 1}}}; j.Total = 10 },
		func(j *Job) {
			j.Count, j.BinScale, j.Wrong = true, MaxBins/200.0, 1e-9
			for i := range MaxBins + 1 {
				j.Edges = append(j.Edges, 200*float64(i)/MaxBins)
			}
		},
	}
	d.turn <- struct{}{} // nobody else's
	var asked []*asked
	for range 2 {
		for _, change := range kinds {
			j := jobOf(v)
			change(j)
			asked = append(asked, d.ask(j))
		}
	}
	d.work(t.Context())
	done := func() (done int) {
		for _, a := range asked {
			select {
			case <-a.done:
				done++
			default:
			}
		}
		return done
	}
	if n := done(); n != len(asked)-1 { // for a second one of the most bins there is no room
		t.Fatalf("one turn has done %d of %d", n, len(asked))
	}
	d.turn <- struct{}{}
	d.work(t.Context())
	if n := done(); n != len(asked) {
		t.Fatalf("two turns have done %d of %d", n, len(asked))
	}
	for i, a := range asked {
		if a.job.From.View == closed {
			if !errors.Is(a.err, core.ErrClosed) {
				t.Errorf("of a closed view: %v, want ErrClosed", a.err)
			}
			continue
		}
		if a.err != nil {
			t.Errorf("job %d: %v", i, a.err)
			continue
		}
		check(t, i, a)
	}
}

// check compares what came of a job with what is so of the numbers from 0 to 199.
func check(t *testing.T, i int, a *asked) {
	t.Helper()
	if a.job.Patterns {
		if want := slices.Concat(slices.Repeat([]int{1}, 200), make([]int, 56)); !slices.Equal(a.counts.Bins, want) {
			t.Errorf("job %d: patterns %d", i, a.counts.Bins)
		}
		return
	}
	n, sum, high := 0, 0.0, math.Inf(-1)
	for _, p := range a.parts {
		n += p.Finite
		sum += p.Mean * float64(p.Finite)
		high = max(high, p.High)
	}
	if n != 200 || math.Abs(sum-199*100) > 1e-6 || high != 199 {
		t.Errorf("job %d: %d numbers, their sum %v, the largest %v", i, n, sum, high)
	}
	counted := 0
	for _, n := range a.counts.Bins {
		counted += n
	}
	want := 0
	switch {
	case len(a.job.Edges) == 3:
		if want = 101; a.counts.Above != 99 || !slices.Equal(a.counts.Bins, []int{50, 51}) {
			t.Errorf("job %d: %+v", i, a.counts)
		}
	case a.job.Count:
		want = 200
	}
	if counted != want {
		t.Errorf("job %d: %d in bins, want %d", i, counted, want)
	}
}

// TestForget takes a job back that nobody has begun.
func TestForget(t *testing.T) {
	t.Parallel()
	var d Device
	one, other := d.ask(new(Job)), d.ask(new(Job))
	d.forget(one)
	d.forget(one)
	if got := d.take(); !slices.Equal(got, []*asked{other}) {
		t.Errorf("%d are left", len(got))
	}
}
