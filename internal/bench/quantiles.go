package bench

import (
	"slices"
	"time"
)

// Quantiles of durations, in nanoseconds.
type Quantiles struct {
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	N    int           `json:"n"`
}

// Median sorts numbers. Of none it is zero.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(numbers))[len(numbers)/2]
}

// QuantilesOf sorts durations. Of none all is zero.
func QuantilesOf(durations []time.Duration) Quantiles {
	if len(durations) == 0 {
		return Quantiles{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	at := func(q float64) time.Duration { return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)] }
	return Quantiles{P50: at(0.50), P99: at(0.99), P999: at(0.999), N: len(sorted)}
}
