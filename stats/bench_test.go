package stats_test

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/bench"
	"github.com/ndbridge/ndbridge/stats"
)

// BenchmarkOf compares summing 1 GiB up with reading it once: in turns, and by the time of all cores, which others on the
// machine disturb less than the time that passes.
func BenchmarkOf(b *testing.B) {
	if testing.Short() {
		b.Skip("needs 1 GiB")
	}
	data := make([]float32, 1<<28)
	for i := range data {
		data[i] = float32(math.Sin(float64(i))) * float32(i%1000)
	}
	v := coretest.NewView(b, data)
	sumUp := func(opts stats.Options) func() {
		return func() {
			if _, err := stats.Of(b.Context(), v, &opts); err != nil {
				b.Fatal(err)
			}
		}
	}
	ways := []struct {
		name string
		run  func()
		took []time.Duration
	}{
		{name: "bare", run: func() { bench.Sum(data, 0) }},
		{name: "exact", run: sumUp(stats.Options{})},
		{name: "histogram", run: sumUp(stats.Options{Bins: stats.Auto})},
		{name: "sample", run: sumUp(stats.Options{Sample: 1 << 18, Bins: stats.Auto})},
	}
	b.SetBytes(4 * int64(len(data)) * int64(len(ways)))
	for b.Loop() {
		for i := range ways {
			begun := processorTime(b)
			ways[i].run()
			ways[i].took = append(ways[i].took, processorTime(b)-begun)
		}
	}
	for _, w := range ways {
		slices.Sort(w.took) // the bare sum's first
		median := w.took[len(w.took)/2]
		b.ReportMetric(median.Seconds()*1000, w.name+"-cpu-ms")
		b.ReportMetric(float64(median)/float64(ways[0].took[len(w.took)/2]), w.name+"/bare")
	}
}

// processorTime is what all cores have done for this process.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
