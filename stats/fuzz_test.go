package stats_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// FuzzOf sums float64 of any bits, with any step, up in the simplest way, and compares.
func FuzzOf(f *testing.F) {
	f.Add([]byte{}, int8(1), uint16(0))
	f.Add(binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, math.Float64bits(math.Inf(-1))), 1), int8(-1), uint16(3))
	f.Add(make([]byte, 5000*8), int8(2), uint16(100))
	f.Fuzz(func(t *testing.T, raw []byte, step int8, bins uint16) {
		data := make([]float64, len(raw)/8)
		for i := range data {
			data[i] = math.Float64frombits(binary.NativeEndian.Uint64(raw[8*i:]))
		}
		v := coretest.NewView(t, data)
		if step != 0 {
			w, err := v.Step(0, int(step))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			v = w
		}
		s := of(t, v, &stats.Options{Bins: int(bins)})
		values, err := core.Values[float64](v)
		if err != nil {
			t.Fatal(err)
		}
		nan, inf, zero, neg, pos, low, high := 0, 0, 0, 0, 0, math.Inf(1), math.Inf(-1)
		for x := range values {
			switch {
			case x-x == 0:
				low, high = min(low, x), max(high, x)
				switch {
				case x == 0:
					zero++
				case x < 0:
					neg++
				default:
					pos++
				}
			case x != x:
				nan++
			default:
				inf++
			}
		}
		have := fmt.Sprint(s.NaN, s.PosInf+s.NegInf, s.Zero, s.Negative, s.Positive)
		if want := fmt.Sprint(nan, inf, zero, neg, pos); have != want {
			t.Fatalf("counts %s, want %s", have, want)
		}
		if s.Finite() == 0 {
			return
		}
		if s.Min != low || s.Max != high || !(s.Mean >= low && s.Mean <= high) || !(s.Std >= 0 && s.Std <= math.MaxFloat64) || math.IsNaN(s.Norm) {
			t.Fatalf("%+v", *s)
		}
		in := s.Histogram.Below + s.Histogram.Above
		for _, n := range s.Histogram.Counts {
			in += n
		}
		if bins > 0 && in != s.Finite() {
			t.Fatalf("%d in the histogram, of %d", in, s.Finite())
		}
	})
}
