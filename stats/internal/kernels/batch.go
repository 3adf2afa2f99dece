//go:build cuda

package kernels

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// asked is a job that somebody waits for. Those that are asked for while the GPU works are done together: each time that the GPU turns
// from the work of a program to that of this process takes longer than most jobs do, and so does the way back.
type asked struct {
	job    *Job
	kernel *cuda.Function
	blocks int
	at     place

	done   chan struct{} // closed when what follows is there
	parts  []Part
	counts *Counts
	err    error
}

// place says where a job, its counters and its parts lie in the memory of the jobs that are done together.
type place struct{ job, counts, parts int }

func (d *Device) ask(j *Job) *asked {
	a := &asked{job: j, kernel: d.sum, blocks: min(d.units*blocksEach, maxParts), done: make(chan struct{})}
	switch {
	case j.Patterns:
		a.kernel, a.blocks = d.patterns, d.units*blocksForPatterns
	case j.Count:
		a.kernel = d.bins
	}
	a.blocks = min(a.blocks, max((j.len()+threads*each-1)/(threads*each), 1))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, a)
	return a
}

// forget takes a job back that has not begun.
func (d *Device) forget(a *asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.asked, a); i >= 0 {
		d.asked = slices.Delete(d.asked, i, i+1)
	}
}

// take gives the first jobs that were asked for, as many as there is memory for. Those whose callers are about to ask come along.
func (d *Device) take() []*asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	for before := -1; before != len(d.asked); {
		before = len(d.asked)
		d.mu.Unlock()
		runtime.Gosched()
		d.mu.Lock()
	}
	n, size := 0, 0
	for n < len(d.asked) {
		if size += d.asked[n].size(); n > 0 && size > scratchSize {
			break
		}
		n++
	}
	together := slices.Clone(d.asked[:n])
	d.asked = slices.Delete(d.asked, 0, n)
	return together
}

// work does jobs that were asked for, by who has the turn, and ends it. If ctx ends, it leaves them to the GPU.
func (d *Device) work(ctx context.Context) {
	together := d.take()
	if len(together) == 0 {
		<-d.turn
		return
	}
	addr, err := d.primary.Borrow()
	if err != nil {
		finish(together, nil, err, nil)
		<-d.turn
		return
	}
	memory, err := d.submit(together, addr)
	waited := d.stream.Synchronize(ctx)
	over := func(waited error) {
		finish(together, memory, err, waited)
		_ = d.primary.GiveBack(addr) // or it goes with its context
		<-d.turn
	}
	if ctx.Err() == nil {
		over(waited)
		return
	}
	go func() { over(d.stream.Synchronize(context.WithoutCancel(ctx))) }() // the GPU may still use it all
}

// submit gives the jobs to the GPU, through pinned memory at addr, and gives that memory. What a job fails of is its own error.
func (d *Device) submit(together []*asked, addr uintptr) ([]byte, error) {
	counts, parts, end := arrange(together)
	memory := gpu.Pinned(addr, end)
	for _, a := range together {
		a.write(memory)
	}
	clear(memory[counts:parts])
	stream := driver.Stream(d.stream.Handle())
	err := d.primary.Do(func() error { return driver.MemcpyHtoDAsync(d.scratch, addr, int64(parts), stream) })
	if err != nil {
		return nil, err
	}
	for _, a := range together {
		a.err = a.launch(d)
	}
	err = d.primary.Do(func() error {
		return driver.MemcpyDtoHAsync(addr+uintptr(counts), d.scratch+uintptr(counts), int64(end-counts), stream)
	})
	return memory, err
}

// arrange places the jobs behind each other, then their counters, then their parts, and says where the latter begin, and where all ends.
func arrange(together []*asked) (counts, parts, end int) {
	for _, a := range together {
		a.at.job = end
		end += a.head()
	}
	counts = end
	for _, a := range together {
		a.at.counts = end
		end += a.counters()
	}
	parts = end
	for _, a := range together {
		a.at.parts = end
		end += a.results()
	}
	return counts, parts, end
}

func (a *asked) launch(d *Device) error {
	j := a.job
	config := cuda.LaunchConfig{
		Grid: cuda.Dim3{uint32(a.blocks)}, Block: cuda.Dim3{threads}, //nolint:gosec // they are few
		SharedBytes: uint32(4 * j.bins() * j.copies()), //nolint:gosec // likewise
	}
	var base any = uintptr(0)
	if j.Base != nil {
		base = cuda.In(j.Base.View)
	}
	return a.kernel.Launch(d.stream, config, cuda.In(j.From.View), base, d.scratch+uintptr(a.at.job))
}

// finish gives everybody what the GPU has written, or what went wrong: by the driver, or while the GPU was waited for.
func finish(together []*asked, memory []byte, err, waited error) {
	for _, a := range together {
		if a.err = errors.Join(a.err, explain(a.job.From.View.Name(), err), waited); a.err == nil {
			a.parts, a.counts = a.read(memory)
		}
		close(a.done)
	}
}

func ended(ctx context.Context, j *Job) error {
	return &core.Error{Op: "stats", Object: j.From.View.Name(), Kind: ctx.Err(), Err: context.Cause(ctx)}
}
