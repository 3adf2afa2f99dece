//go:build cuda && gpu

package stats_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/stats"
	"github.com/ndbridge/ndbridge/test/gpu/report"
)

// large is how many bytes the arrays have whose sums are timed.
const large = 1 << 30

// bandwidth is what the GPU's memory can give in a second, in bytes, by what the driver says of it.
func bandwidth(tb testing.TB) float64 {
	tb.Helper()
	const memoryClock, busWidth = 36, 37 // kHz and bits; the memory gives two words in a cycle
	product := 2e3 / 8.0
	for _, a := range []driver.DeviceAttribute{memoryClock, busWidth} {
		x, err := driver.DeviceGetAttribute(0, a)
		if err != nil {
			tb.Fatal(err)
		}
		product *= float64(x)
	}
	return product
}

// fillings are bytes as arrays of such types have them, some of them in proportions that are hard for the GPU.
var fillings = []struct {
	dtype, what string
	fill        func(r *rand.Rand, b []byte)
}{
	{"float32", "normal", func(r *rand.Rand, b []byte) {
		for i := 0; i < len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], math.Float32bits(float32(r.NormFloat64())))
		}
	}},
	{"float32", "zeros", func(_ *rand.Rand, b []byte) { clear(b) }},
	{"float32", "1% NaN", func(r *rand.Rand, b []byte) {
		for i := 0; i < len(b); i += 4 {
			x := r.NormFloat64()
			if r.IntN(100) == 0 {
				x = math.NaN()
			}
			binary.NativeEndian.PutUint32(b[i:], math.Float32bits(float32(x)))
		}
	}},
	{"bfloat16", "normal", func(r *rand.Rand, b []byte) {
		for i := 0; i < len(b); i += 2 {
			binary.NativeEndian.PutUint16(b[i:], uint16(math.Float32bits(float32(r.NormFloat64()))>>16))
		}
	}},
	{"float16", "below 2", func(r *rand.Rand, b []byte) {
		for i := 0; i < len(b); i += 2 {
			binary.NativeEndian.PutUint16(b[i:], uint16(r.Uint32())&0xbfff)
		}
	}},
	{"float64", "normal", doubles},
	{"complex64", "normal", func(r *rand.Rand, b []byte) {
		for i := 0; i < len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], math.Float32bits(float32(r.NormFloat64())))
		}
	}},
	{"complex128", "normal", doubles},
	{"int64", "any", any8},
	{"int32", "any", any8},
	{"int16", "any", any8},
	{"uint8", "any", any8},
	{"bool", "any", func(r *rand.Rand, b []byte) {
		for i := range b {
			b[i] = byte(r.UintN(2))
		}
	}},
	{"float8_e5m2", "below 2", func(r *rand.Rand, b []byte) {
		for i := range b {
			b[i] = byte(r.UintN(256)) & 0xbf
		}
	}},
	{"int4", "any", any8},
}

func any8(r *rand.Rand, b []byte) {
	for i := 0; i < len(b); i += 8 {
		binary.NativeEndian.PutUint64(b[i:], r.Uint64())
	}
}

func doubles(r *rand.Rand, b []byte) {
	for i := 0; i < len(b); i += 8 {
		binary.NativeEndian.PutUint64(b[i:], math.Float64bits(r.NormFloat64()))
	}
}

// TestOnGPUCosts times sums of 1 GiB, compares them with those of the CPU, and says what share of the time the memory alone would take.
func TestOnGPUCosts(t *testing.T) { //nolint:paralleltest // it measures
	all, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	limit := bandwidth(t)
	m := newMemoryOnGPU(t, large)
	data := make([]byte, large)
	for _, f := range fillings {
		r := rand.New(rand.NewPCG(1, 2))
		const pattern = 1 << 24
		f.fill(r, data[:pattern])
		for i := pattern; i < large; i *= 2 {
			copy(data[i:], data[:i])
		}
		m.put(data)
		d, err := core.ParseDType(f.dtype)
		if err != nil {
			t.Fatal(err)
		}
		dense := core.LayoutSpec{DType: d, Shape: []int{large / max(d.Size(), 1)}}
		if d.Packed() {
			dense.Shape[0] = large * 8 / d.Bits()
		}
		ways := []way{{"all", dense, stats.Options{}}}
		switch f.dtype {
		case "float32", "uint8", "float64":
			ways = append(ways, way{"64 bins", dense, stats.Options{Bins: 64, Low: -3, High: 3}}, way{"powers of 2", dense, stats.Options{Bins: 1, Log: true}})
		}
		if f.what == "normal" && f.dtype == "float32" {
			gaps := core.LayoutSpec{DType: d, Shape: []int{1 << 14, 1 << 13}, Strides: []int{1 << 16, 8}}
			ways = append(
				ways, way{"every second", gaps, stats.Options{}}, way{"64 bins of their range", dense, stats.Options{Bins: 64}}, way{"65536 bins", dense, stats.Options{Bins: 1 << 16}},
				way{"a sample of 65536", dense, stats.Options{Sample: 1 << 16}}, way{"a sample of 16777216", dense, stats.Options{Sample: 1 << 24}},
			)
		}
		for _, w := range ways {
			row := &report.Row{Table: fmt.Sprintf("Figures of 1 GiB on %s, whose memory gives %.0f GB/s", all[0].Name, limit/1e9)}
			row.Set("type", f.dtype)
			row.Set("numbers", f.what)
			row.Set("figures", w.name)
			w.time(t, m, data, limit, row)
			t.Logf("%+v", row.Fields)
			if file := os.Getenv("NDBRIDGE_TEST_REPORT"); file != "" {
				if err := report.Append(file, row); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// way is one way to sum up an array.
type way struct {
	name string
	spec core.LayoutSpec
	opts stats.Options
}

func (w way) time(t *testing.T, m *memoryOnGPU, data []byte, limit float64, row *report.Row) {
	t.Helper()
	v := m.view(w.spec)
	var on *stats.Summary
	var times []time.Duration
	const warm = 300 * time.Millisecond // in which the GPU comes to its speed
	for begun := time.Now(); time.Since(begun) < warm; {
		on = of(t, v, &w.opts)
	}
	for range 21 {
		times = append(times, of(t, v, &w.opts).Taken)
	}
	slices.Sort(times)
	took := times[10]
	cpu := of(t, bytesView(t, data, w.spec, nil), &w.opts)
	same(t, fmt.Sprint(row.Fields), on, cpu)
	row.Set("time", took.Round(time.Microsecond))
	if w.opts.Sample == 0 {
		row.Set("GB/s", fmt.Sprintf("%.0f", large/took.Seconds()/1e9))
		row.Set("of the limit", fmt.Sprintf("%.0f%%", 100*large/limit/took.Seconds()))
	}
	row.Set("by the CPU, of host memory", cpu.Taken.Round(10*time.Microsecond))
	if w.name == "all" && row.Fields[1].Value == "normal" {
		begun := time.Now()
		if _, err := core.CopyBytes(t.Context(), data, v); err != nil {
			t.Fatal(err)
		}
		row.Set("to copy it to the CPU", time.Since(begun).Round(10*time.Microsecond))
	}
}

// TestOnGPULatency times sums of few elements.
func TestOnGPULatency(t *testing.T) { //nolint:paralleltest // it measures
	gpu, _ := onBoth(t, make([]byte, 4096), core.LayoutSpec{DType: core.Float32, Shape: []int{1024}})
	begun := time.Now()
	of(t, gpu, nil)
	first := time.Since(begun)
	var times []time.Duration
	for range 200 {
		times = append(times, of(t, gpu, nil).Taken)
	}
	slices.Sort(times)
	row := &report.Row{Table: "Figures of 1024 numbers on the GPU"}
	row.Set("the first time", first.Round(10*time.Microsecond))
	row.Set("median of 200", times[100].Round(100*time.Nanosecond))
	row.Set("p99", times[197].Round(100*time.Nanosecond))
	host := coretest.NewView(t, make([]float32, 1024))
	row.Set("by the CPU, of host memory", of(t, host, nil).Taken)
	t.Logf("%+v", row.Fields)
	if file := os.Getenv("NDBRIDGE_TEST_REPORT"); file != "" {
		if err := report.Append(file, row); err != nil {
			t.Error(err)
		}
	}
}
