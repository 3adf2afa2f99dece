//go:build cuda

package costs

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	program "github.com/ndbridge/ndbridge/internal/gpu/export"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/test/gpu/report"
)

const size = 2 << 20 // bytes of each allocation

// TestMain also runs the binary as the program whose memory is opened.
func TestMain(m *testing.M) {
	if os.Getenv(exporterEnv) != "" {
		os.Exit(runExporter())
	}
	os.Exit(m.Run())
}

// gpu opens the first device until the test ends.
func primary(t *testing.T) *gpu.Primary {
	t.Helper()
	if err := cuda.Available(); err != nil {
		t.Fatal(err)
	}
	g, err := gpu.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// bounded says whether the driver is one whose calls take the time that they do.
func bounded(t *testing.T) bool {
	t.Helper()
	devices, err := cuda.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(strings.ToLower(devices[0].Name), "simulated")
}

// TestOrder measures what a program's side does so that a hand-over comes after all work of a context:
// everything is recorded, a stream of ours waits for it, and writes a word.
func TestOrder(t *testing.T) { //nolint:paralleltest // it measures
	const n, most = 500, 5 * time.Microsecond
	g := primary(t)
	p, work := pendingWork(t, g)
	var x program.Exporter
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	var took []time.Duration
	for i := range n + 20 {
		release := work()
		start := time.Now()
		w, err := x.FenceAll(p)
		if i >= 20 { // what comes first makes streams and pages
			took = append(took, time.Since(start))
		}
		release()
		if err != nil || w == nil {
			t.Fatalf("a fence behind work: %v (%v)", w, err)
		}
		for !w.Reached() { // only so many may be outstanding
			runtime.Gosched()
		}
	}
	p50 := row(t, "ordering a hand-over after all work of a context, the work still running", took)
	if bounded(t) && p50 > most {
		t.Errorf("ordering a hand-over takes %v, want at most %v", p50, most)
	}
}

// TestCalls measures the driver's calls of which a look again at an array consists.
func TestCalls(t *testing.T) { //nolint:paralleltest // it measures
	const n = 2000
	g := primary(t)
	w := newWorkplace(t, g)
	p, ctx := w.memory, driver.Context(w.memory.Context())
	var event driver.Event
	err := g.Do(func() (err error) { event, err = driver.EventCreate(driver.EventDisableTiming); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Do(func() error { return driver.EventDestroy(event) }); err != nil {
			t.Error(err)
		}
	})
	var took [7][]time.Duration
	calls := [...]struct {
		what string
		call func() error
	}{
		{"cuPointerGetAttributes", func() error { _, err := driver.PointerAttributes(p.Addr); return err }},
		{"cuPointerGetAttribute (the number of the allocation)", func() error { _, err := driver.PointerBufferID(p.Addr); return err }},
		{"cuCtxGetId", func() error { _, err := driver.CtxID(ctx); return err }},
		{"entering and leaving the context", func() error { return driver.With(ctx, func() error { return nil }) }},
		{"cuCtxRecordEvent", func() error { return driver.CtxRecordEvent(ctx, event) }},
		{"cuStreamWaitEvent", func() error { return driver.StreamWaitEvent(w.stream, event) }},
		{"cuStreamWriteValue32", func() error { return driver.StreamWriteValue32(w.stream, w.word, 1) }},
	}
	for i := range n {
		for c, x := range calls {
			measured := func() error {
				start := time.Now()
				err := x.call()
				took[c] = append(took[c], time.Since(start))
				return err
			}
			if c >= 5 { // the stream's own, which are made in a context
				err = g.Do(measured)
			} else {
				err = measured()
			}
			if err != nil {
				t.Fatalf("%s: %v", x.what, err)
			}
		}
		if i%32 == 0 {
			if err := g.Do(func() error { return driver.StreamSynchronize(w.stream) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for c, x := range calls {
		row(t, "the driver's call alone: "+x.what, took[c])
	}
}

// workplace is a context with some memory, a stream, and a word that both sides write.
type workplace struct {
	memory gpu.Pointer
	stream driver.Stream
	word   uintptr
}

func newWorkplace(t *testing.T, g *gpu.Primary) (w workplace) {
	t.Helper()
	var memory uintptr
	err := g.Do(func() (err error) {
		if memory, err = driver.MemAlloc(size); err != nil {
			return err
		}
		if w.word, err = driver.HostAlloc(4096); err != nil {
			return err
		}
		w.stream, err = driver.StreamCreate()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := g.Do(func() error {
			return firstOf(driver.StreamDestroy(w.stream), driver.FreeHost(w.word), driver.MemFree(memory))
		})
		if err != nil {
			t.Error(err)
		}
	})
	if w.memory, err = gpu.Inspect(memory, size); err != nil {
		t.Fatal(err)
	}
	return w
}

// pendingWork gives some memory, and a function that lets a stream of its context wait for what the
// function then does that it returns.
func pendingWork(t *testing.T, g *gpu.Primary) (gpu.Pointer, func() func()) {
	t.Helper()
	w := newWorkplace(t, g)
	turn := uint32(0)
	return w.memory, func() func() {
		turn++
		if err := g.Do(func() error { return driver.StreamWaitValue32(w.stream, w.word, turn) }); err != nil {
			t.Fatal(err)
		}
		return func() {
			*wordAt(w.word) = turn
			if err := g.Do(func() error { return driver.StreamSynchronize(w.stream) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestImport measures opening memory of another process: for the first time, in turns with the driver's
// own calls, and again while it is open.
func TestImport(t *testing.T) { //nolint:paralleltest // it measures
	const most, mostAgain = 1.2, 5 * time.Microsecond
	g := primary(t)
	for _, route := range []core.Route{contract.RouteCUDAIPC, contract.RouteCUDAVMM} { //nolint:paralleltest // it measures
		t.Run(string(route), func(t *testing.T) {
			e := startExporter(t, route)
			importer := imports.New(e)
			var raw, ours, again []time.Duration
			for i, lease := range e.leases {
				if i%2 == 0 {
					raw = append(raw, e.open(t, g, lease))
					continue
				}
				start := time.Now()
				m, _, err := importer.Memory(t.Context(), lease, func() {})
				ours = append(ours, time.Since(start))
				if err != nil {
					t.Fatal(err)
				}
				for range 20 {
					start := time.Now()
					m, _, err := importer.Memory(t.Context(), lease, func() {})
					again = append(again, time.Since(start))
					if err != nil {
						t.Fatal(err)
					}
					if err := m.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := importer.Close(); err != nil {
				t.Error(err)
			}
			rawP50 := row(t, fmt.Sprintf("first import, %v: the driver's own calls", route), raw[1:])
			oursP50 := row(t, fmt.Sprintf("first import, %v: Importer.Memory", route), ours[1:])
			againP50 := row(t, fmt.Sprintf("import of what is open, %v: Importer.Memory", route), again)
			if !bounded(t) {
				return
			}
			if ratio := float64(oursP50) / float64(rawP50); ratio > most {
				t.Errorf("a first import takes %.2f times as long as the driver's own calls, want at most %.1f", ratio, most)
			}
			if againP50 > mostAgain {
				t.Errorf("an import of what is open takes %v, want at most %v", againP50, mostAgain)
			}
		})
	}
}

// row reports what was measured, and gives the median.
func row(t *testing.T, what string, took []time.Duration) time.Duration {
	t.Helper()
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[min(int(q*float64(len(took))), len(took)-1)] }
	r := &report.Row{Table: "Parts of a hand-over, in one process"}
	r.Set("what", what)
	for _, q := range []float64{0.50, 0.99} {
		r.Set(fmt.Sprintf("p%.0f", q*100), fmt.Sprintf("%.2f us", float64(at(q))/1e3))
	}
	r.Set("n", len(took))
	t.Log(r.Fields)
	if file := os.Getenv("NDBRIDGE_TEST_REPORT"); file != "" {
		if err := report.Append(file, r); err != nil {
			t.Error(err)
		}
	}
	return at(0.50)
}
