package stats_test

import (
	"math"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// BenchmarkOf compares summing 1 GiB up with reading it once.
func BenchmarkOf(b *testing.B) {
	if testing.Short() {
		b.Skip("needs 1 GiB")
	}
	data := make([]float32, 1<<28)
	for i := range data {
		data[i] = float32(math.Sin(float64(i))) * float32(i%1000)
	}
	v := coretest.NewView(b, data)
	b.Run("bare sum", func(b *testing.B) {
		b.SetBytes(4 * int64(len(data)))
		defer busy(b)()
		for b.Loop() {
			bareSum(data)
		}
	})
	for name, opts := range map[string]stats.Options{
		"exact": {}, "exact with histogram": {Bins: stats.Auto}, "sampled": {Sample: 1 << 18, Bins: stats.Auto},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * int64(len(data)))
			b.ReportAllocs()
			defer busy(b)()
			for b.Loop() {
				if _, err := stats.Of(b.Context(), v, &opts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// busy reports the time of all cores, too, which others on the machine disturb less.
func busy(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun := used()
	return func() { b.ReportMetric(float64(used()-begun)/float64(b.N), "cpu-ns/op") }
}

// bareSum reads all elements once, on all cores.
func bareSum(data []float32) (total float32) {
	workers := runtime.GOMAXPROCS(0)
	sums := make([]float32, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			part := data[len(data)/workers*w:][:len(data)/workers]
			var a, b, c, d, e, f, g, h float32
			for ; len(part) >= 8; part = part[8:] {
				a += part[0]
				b += part[1]
				c += part[2]
				d += part[3]
				e += part[4]
				f += part[5]
				g += part[6]
				h += part[7]
			}
			sums[w] = a + b + c + d + e + f + g + h
		})
	}
	wait.Wait()
	for _, s := range sums {
		total += s
	}
	return total
}
