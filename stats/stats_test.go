package stats_test

import (
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

func TestOf(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	v := coretest.NewView(t, []float32{1, nan, -3, inf, -inf, 5, 0, float32(math.Copysign(0, -1))}, 2, 4)
	s, err := stats.Of(t.Context(), v, &stats.Options{Bins: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *s)
	if s.Len != 8 || s.Seen != 8 || s.NaN != 1 || s.PosInf != 1 || s.NegInf != 1 || s.Zero != 2 || s.Negative != 1 || s.Positive != 2 {
		t.Errorf("counts: %+v", *s)
	}
	if s.Min != -3 || s.Max != 5 || s.Mean != 0.6 || math.Abs(s.Norm-math.Sqrt(35)) > 1e-12 {
		t.Errorf("figures: %+v", *s)
	}
}
