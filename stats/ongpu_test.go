//go:build cuda

package stats_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/stats"
)

// memoryOnGPU makes memory of the first GPU, and gives views of it until the test ends.
type memoryOnGPU struct {
	tb  testing.TB
	own *imports.Own
}

func newMemoryOnGPU(tb testing.TB, size int) *memoryOnGPU {
	tb.Helper()
	importer := imports.New(nil)
	own, f, err := importer.Own(0, int64(size))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(f.Close(), own.Close(), importer.Close()); err != nil {
			tb.Error(err)
		}
	})
	return &memoryOnGPU{tb, own}
}

func (m *memoryOnGPU) view(spec core.LayoutSpec) *core.View {
	m.tb.Helper()
	spec.Device = core.Device{Kind: core.CUDA}
	l, err := core.NewLayout(spec)
	if err != nil {
		m.tb.Fatal(err)
	}
	memory, err := m.own.Memory(func() {})
	if err != nil {
		m.tb.Fatal(err)
	}
	v, err := core.NewView(l, memory, &core.ViewOptions{Name: m.tb.Name(), Writable: !l.ReadOnly()})
	if err != nil {
		m.tb.Fatal(err)
	}
	m.tb.Cleanup(func() {
		if err := v.Close(); err != nil {
			m.tb.Error(err)
		}
	})
	return v
}

// put writes the memory's first bytes.
func (m *memoryOnGPU) put(data []byte) {
	m.tb.Helper()
	if len(data) == 0 {
		return
	}
	if _, err := core.Put(m.tb.Context(), m.view(core.LayoutSpec{DType: core.Uint8, Shape: []int{len(data)}}), data); err != nil {
		m.tb.Fatal(err)
	}
}

// onBoth gives the same array in memory of the GPU and of the host.
func onBoth(tb testing.TB, data []byte, spec core.LayoutSpec) (gpu, cpu *core.View) {
	tb.Helper()
	m := newMemoryOnGPU(tb, max(len(data), 1))
	m.put(data)
	return m.view(spec), bytesView(tb, data, spec, nil)
}

// same compares what a GPU says with what the CPU says: figures that are sums, within what rounding does to so many elements, and all
// others bit by bit.
func same(tb testing.TB, what string, gpu, cpu *stats.Summary) {
	tb.Helper()
	text := func(s *stats.Summary) string {
		return fmt.Sprintln(s.Len, s.Seen, s.Runs, s.Sweep, "NaN", s.NaN, s.PosInf, s.NegInf, "zero", s.Zero, s.Negative, s.Positive,
			"from", s.Min+0, s.Max+0, "edges", s.Histogram.Edges, "counts", s.Histogram.Counts, s.Histogram.Below, s.Histogram.Above)
	}
	if have, want := text(gpu), text(cpu); have != want {
		tb.Errorf("%s: the GPU says\n%.2000s, the CPU\n%.2000s", what, have, want)
		return
	}
	near := func(figure string, a, b, scale float64) {
		if !(math.Abs(a/2-b/2) <= 1e-12*scale) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
			tb.Errorf("%s: the %s is %v on the GPU, and %v on the CPU", what, figure, a, b)
		}
	}
	most := max(-cpu.Min, cpu.Max)
	near("mean", gpu.Mean, cpu.Mean, most)
	near("deviation", gpu.Std, cpu.Std, cpu.Std+1e-6*most)
	near("norm", gpu.Norm, cpu.Norm, cpu.Norm)
}

// numberTypes are all types that have one number.
func numberTypes(tb testing.TB) []core.DType {
	tb.Helper()
	var all []core.DType
	for code := range 64 {
		for _, bits := range []int{1, 2, 4, 6, 8, 16, 32, 64, 128} {
			if d, err := core.NewDType(code, bits, 1); err == nil && !d.Opaque() {
				all = append(all, d)
			}
		}
	}
	if len(all) < 30 {
		tb.Fatalf("%d types", len(all))
	}
	return all
}

// randomBytes are all patterns: of floats, NaN, infinities and numbers too small for full precision, too.
func randomBytes(n int, seed uint64) []byte {
	data := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = random.Read(data) // it does not fail
	return data
}

// options are all ways to sum up.
var summaries = map[string]*stats.Options{
	"all":       nil,
	"bins":      {Bins: 64, Low: -100, High: 100},
	"own range": {Bins: stats.Auto},
	"powers":    {Bins: stats.Auto, Log: true},
	"many bins": {Bins: 3000, Low: -3, High: 200},
	"most bins": {Bins: 1 << 16, Low: 0, High: 255},
	"sample":    {Sample: 1000, Seed: 7, Bins: 64},
	"few":       {Sample: 3, Seed: 1},
}

// TestOnGPUTypes compares all types.
func TestOnGPUTypes(t *testing.T) {
	t.Parallel()
	const n = 5003
	for _, d := range numberTypes(t) {
		gpu, cpu := onBoth(t, randomBytes((n*d.Bits()+7)/8, 1), core.LayoutSpec{DType: d, Shape: []int{n}})
		for name, o := range summaries {
			there, here := of(t, gpu, o), of(t, cpu, o)
			same(t, fmt.Sprintf("%v, %s", d, name), there, here)
			if !there.OnGPU || here.OnGPU {
				t.Errorf("%v, %s: on a GPU: %t and %t", d, name, there.OnGPU, here.OnGPU)
			}
		}
	}
	order := ">"
	for _, kind := range []string{"i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"} {
		size := map[byte]int{'2': 2, '4': 4, '8': 8, '6': 16}[kind[len(kind)-1]]
		d, err := core.Opaque(size)
		if err != nil {
			t.Fatal(err)
		}
		gpu, cpu := onBoth(t, randomBytes(n*size, 2), core.LayoutSpec{DType: d, Tag: order + kind, Shape: []int{n}})
		same(t, order+kind, of(t, gpu, nil), of(t, cpu, nil))
	}
}

// TestOnGPULayouts compares arrays that lie in any way.
func TestOnGPULayouts(t *testing.T) {
	t.Parallel()
	specs := map[string]core.LayoutSpec{
		"dense":       {Shape: []int{41, 50}},
		"column":      {Shape: []int{41, 50}, Strides: []int{1, 41}},
		"offset":      {Shape: []int{2050}, Offset: 3},
		"gaps":        {Shape: []int{29, 31}, Strides: []int{64, 2}},
		"backwards":   {Shape: []int{3, 500}, Strides: []int{-600, -1}, Offset: 1900},
		"repeated":    {Shape: []int{7, 100, 5}, Strides: []int{0, 3, 1}},
		"one value":   {Shape: []int{3, 4}, Strides: []int{0, 0}, Offset: 9},
		"five axes":   {Shape: []int{3, 4, 5, 2, 3}, Strides: []int{200, 3, 13, 70, 1}},
		"one element": {Shape: []int{1}, Offset: 5},
		"rank 0":      {Shape: []int{}, Offset: 5},
		"empty":       {Shape: []int{3, 0, 2}},
		"windows":     {Shape: []int{900, 20}, Strides: []int{1, 1}},
	}
	for _, d := range []core.DType{core.Uint8, core.Float16, core.Float32, core.Float64, core.Complex128} {
		data := randomBytes(2200*d.Size()+1, 3)
		for name, spec := range specs {
			for _, misaligned := range []int{0, 1} {
				s := spec
				s.DType = d
				s.Offset = s.Offset*d.Size() + misaligned
				s.Strides = slices.Clone(s.Strides)
				for i := range s.Strides {
					s.Strides[i] *= d.Size()
				}
				gpu, cpu := onBoth(t, data, s)
				for _, o := range []*stats.Options{nil, {Bins: 10}, {Sample: 333, Seed: 3}} {
					same(t, fmt.Sprintf("%s of %v, %d bytes misaligned", name, d, misaligned), of(t, gpu, o), of(t, cpu, o))
				}
			}
		}
	}
}

// TestOnGPUNumbers compares numbers that are hard to sum up.
func TestOnGPUNumbers(t *testing.T) {
	t.Parallel()
	const n = 20_000
	nan, inf := math.NaN(), math.Inf(1)
	makers := map[string]func(i int) float64{
		"NaN alone":       func(int) float64 { return nan },
		"infinities":      func(i int) float64 { return []float64{inf, -inf}[i%2] },
		"NaN first":       func(i int) float64 { return []float64{nan, 1}[min(i/9000, 1)] },
		"far from zero":   func(i int) float64 { return 1e9 + float64(i%10) },
		"one far away":    func(i int) float64 { return []float64{1e8, float64(i%7) * 1e-3}[min(i, 1)] },
		"very large":      func(i int) float64 { return (float64(i%11) - 5) * 2e307 },
		"very small":      func(i int) float64 { return (float64(i%11) - 5) * 1e-300 },
		"large and small": func(i int) float64 { return []float64{1e300, 1e-300, 0, -1e200}[i%4] },
		"zeros":           func(i int) float64 { return math.Copysign(0, float64(i%2)-0.5) },
		"on edges":        func(i int) float64 { return float64(i%17) / 16 },
		"NaN at the end":  func(i int) float64 { return []float64{0.25, nan}[i/(n-1)] },
	}
	for name, maker := range makers {
		numbers := make([]float64, n)
		for i := range numbers {
			numbers[i] = maker(i)
		}
		m := newMemoryOnGPU(t, 8*n)
		gpu := m.view(core.LayoutSpec{DType: core.Float64, Shape: []int{n}})
		if _, err := core.Put(t.Context(), gpu, numbers); err != nil {
			t.Fatal(err)
		}
		cpu := coretest.NewView(t, numbers)
		for way, o := range map[string]*stats.Options{"all": nil, "bins": {Bins: 16}, "unit": {Bins: 16, High: 1}, "powers": {Bins: 1, Log: true}} {
			same(t, name+", "+way, of(t, gpu, o), of(t, cpu, o))
		}
	}
}

// TestOnGPUDifference compares differences to a base on the same GPU, and to one in host memory.
func TestOnGPUDifference(t *testing.T) {
	t.Parallel()
	shape := []int{300, 40}
	gpu, cpu := onBoth(t, randomBytes(300*40, 4), core.LayoutSpec{DType: core.Int8, Shape: shape})
	base, hostBase := onBoth(t, randomBytes(4*300*40, 5), core.LayoutSpec{DType: core.Int32, Shape: shape, Strides: []int{4, 1200}})
	for _, o := range []stats.Options{{}, {Bins: 30}, {Sample: 800, Seed: 2}} {
		there, here := o, o
		there.Base, here.Base = base, hostBase
		same(t, fmt.Sprintf("%+v", o), of(t, gpu, &there), of(t, cpu, &here))
	}
	kept, err := stats.Keep(t.Context(), gpu)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, o := range []stats.Options{{}, {Sample: 800, Seed: 2}} { // a sample of a copy would be another one
		there, here := o, o
		there.Base, here.Base = kept, kept
		same(t, fmt.Sprintf("%+v less what was kept", o), of(t, base, &there), of(t, hostBase, &here))
	}
	there := of(t, gpu, &stats.Options{Base: hostBase})
	if same(t, "a base in host memory", there, of(t, cpu, &stats.Options{Base: hostBase})); there.OnGPU {
		t.Error("the GPU has read memory of the host")
	}
}

// TestOnGPUEnds sums up what is closed, and under a context that has ended.
func TestOnGPUEnds(t *testing.T) {
	t.Parallel()
	gpu, _ := onBoth(t, make([]byte, 100), core.LayoutSpec{DType: core.Uint8, Shape: []int{100}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stats.Of(ctx, gpu, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("under a context that has ended: %v", err)
	}
	if s := of(t, gpu, nil); s.Zero != 100 {
		t.Errorf("afterwards: %+v", s)
	}
	if err := gpu.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := stats.Of(t.Context(), gpu, nil); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a closed view: %v, want ErrClosed", err)
	}
}

// TestOnGPURefused runs TestStaged where the driver is too old for the kernels, or has no room for them.
func TestOnGPURefused(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"version=11080", "oom=1"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStaged$", "-test.v")
		cmd.Env = append(os.Environ(), "CUDASIM_FAULTS="+fault) // of which a real driver knows nothing
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestStaged") {
			t.Errorf("%s: %v\n%s", fault, err, out)
		}
	}
}

// TestOnGPUAtOnce sums up on several goroutines.
func TestOnGPUAtOnce(t *testing.T) {
	t.Parallel()
	gpu, cpu := onBoth(t, randomBytes(4*3000, 6), core.LayoutSpec{DType: core.Float32, Shape: []int{3000}})
	done := make(chan *stats.Summary)
	const many = 8
	for range many {
		go func() {
			s, err := stats.Of(t.Context(), gpu, &stats.Options{Bins: 20})
			if err != nil {
				t.Error(err)
				s = new(stats.Summary)
			}
			done <- s
		}()
	}
	want := of(t, cpu, &stats.Options{Bins: 20})
	for range many {
		same(t, "one of several", <-done, want)
	}
}
