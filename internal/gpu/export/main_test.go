//go:build cuda

package export_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program is a context with memory, two streams and a kernel that takes time.
type program struct {
	export.Exporter
	pointer    gpu.Pointer
	fast, slow driver.Stream

	t         *testing.T
	ctx       driver.Context
	wait, add driver.Function
}

// newProgram makes a program in the primary context.
func newProgram(t *testing.T) *program {
	t.Helper()
	check(t, gpu.Available())
	p := &program{t: t}
	p.enter()
	t.Cleanup(func() {
		check(t, p.Close())
		p.do(func() error {
			check(t, driver.StreamDestroy(p.fast))
			check(t, driver.StreamDestroy(p.slow))
			return driver.MemFree(p.pointer.Addr)
		})
		check(t, driver.PrimaryCtxRelease(0))
	})
	return p
}

// enter makes what the program has, in the primary context.
func (p *program) enter() {
	t := p.t
	t.Helper()
	ptx, err := os.ReadFile("../../../test/gpu/testdata/kernels.ptx")
	check(t, err)
	p.ctx, err = driver.PrimaryCtxRetain(0)
	check(t, err)
	const size = 1 << 20
	p.do(func() error {
		module, err := driver.ModuleLoadData(string(ptx))
		check(t, err)
		p.wait, err = driver.ModuleGetFunction(module, "wait")
		check(t, err)
		p.add, err = driver.ModuleGetFunction(module, "add")
		check(t, err)
		p.fast, err = driver.StreamCreate()
		check(t, err)
		p.slow, err = driver.StreamCreate()
		check(t, err)
		addr, err := driver.MemAlloc(size)
		check(t, err)
		p.pointer, err = gpu.Inspect(addr, size)
		return err
	})
}

func (p *program) do(f func() error) {
	p.t.Helper()
	check(p.t, driver.With(p.ctx, f))
}

// work lets the stream be at work for some nanoseconds.
func (p *program) work(s driver.Stream, time uint64) {
	p.t.Helper()
	one := driver.Dim{X: 1, Y: 1, Z: 1}
	p.do(func() error { return driver.LaunchKernel(p.wait, one, one, 0, s, []uint64{time}) })
}

// idle says whether the stream has done its work.
func (p *program) idle(s driver.Stream) (done bool) {
	p.t.Helper()
	p.do(func() (err error) { done, err = driver.StreamQuery(s); return err })
	return done
}

// queue gives a queue where the memory is.
func (p *program) queue() *export.Queue {
	p.t.Helper()
	q, err := p.Queue(p.pointer)
	check(p.t, err)
	return q
}
