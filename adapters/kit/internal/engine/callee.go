package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/hostarrays"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// callee answers the calls of a host. All methods are safe for concurrent use.
type callee struct {
	*Program

	mu        sync.Mutex
	segments  map[uint32]*hostarrays.Segment
	functions map[uint64]*function
	last      uint64 // number of a function or a generator

	loop    loop
	forks   bool // functions can fork: forks.py has run. The GIL guards it
	signals mainSignals
}

// function is what a host calls: a function, or a generator.
type function struct {
	object py.Object // with a reference
	takes  parameters

	generator, async bool  // it is a generator, whose values are awaited
	gpus             []int // of a generator: on which its arguments are
}

var _ calls.Callee = (*callee)(nil)

// Callee gives what answers the calls of a host.
func (p *Program) Callee() calls.Callee {
	c := &callee{Program: p, segments: make(map[uint32]*hostarrays.Segment), functions: make(map[uint64]*function)}
	p.callee.Store(c)
	return c
}

// Worker implements calls.Callee.
func (c *callee) Worker() calls.Worker { return &worker{callee: c, thread: c.interp.Thread()} }

// Adopt implements calls.Callee.
func (c *callee) Adopt(number uint32, files []*os.File, a calls.Adoption) error {
	s, err := c.adopt(files, a)
	if err != nil {
		return err
	}
	c.mu.Lock()
	before := c.segments[number]
	c.segments[number] = s
	c.mu.Unlock()
	if before != nil {
		return before.Close()
	}
	return nil
}

func (c *callee) adopt(files []*os.File, a calls.Adoption) (*hostarrays.Segment, error) {
	if a.Handle != nil {
		s, err := hostarrays.MapGPU(files, a.Handle, a.Writable, c.gpuIdle)
		if err != nil {
			return nil, driver.Explain("adopt", "", err)
		}
		return s, nil
	}
	s, err := hostarrays.Map(files[0], a.Size, a.Writable)
	if err != nil {
		return nil, &core.Error{Op: "adopt", Kind: core.ErrUnavailable, Err: err}
	}
	return s, nil
}

// Forget implements calls.Callee.
func (c *callee) Forget(number uint32) {
	c.mu.Lock()
	s := c.segments[number]
	delete(c.segments, number)
	c.mu.Unlock()
	if s != nil {
		_ = s.Close() // never fails
	}
}

// gpuIdle waits until a GPU has done all that it was given.
func (c *callee) gpuIdle(ctx context.Context, device int) error {
	return c.router.GPU.Idle(ctx, device, 0)
}

// segment gives memory that the host has handed over.
func (c *callee) segment(number uint32) (*hostarrays.Segment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.segments[number]
	if s == nil {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("segment %d was not handed over", number)}
	}
	return s, nil
}

// Outside implements calls.Callee.
func (c *callee) Outside(a *calls.Argument) ([]byte, error) {
	s, err := c.segment(a.Segment)
	if err != nil {
		return nil, err
	}
	return s.Read(a.Layout.Offset(), int(a.Layout.NBytes()))
}

// Put implements calls.Callee.
func (c *callee) Put(answer []byte) (contract.Lease, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{len(answer)}})
	if err != nil {
		return contract.Lease{}, err
	}
	place, err := c.router.Put(answer, l, contract.ReasonConverted)
	if err != nil {
		return contract.Lease{}, err
	}
	lease, _, err := c.enter(owner{shown: scalarFramework}, &reading{}, place, false, nil)
	return lease, err
}

// Release implements calls.Callee.
func (c *callee) Release(ids ...contract.LeaseID) {
	_ = c.Program.Release(context.Background(), ids...) // nobody is there to be told
}

// keep numbers a function or a generator, whose reference it takes over.
func (c *callee) keep(f *function) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.functions[c.last] = f
	return c.last
}

// function gives what has that number.
func (c *callee) function(number uint64) (*function, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.functions[number]; f != nil {
		return f, nil
	}
	return nil, &core.Error{Kind: core.ErrClosed, Err: errors.New("the function was closed")}
}

// forget forgets a function or a generator. A generator is closed, as Python does with one that nobody refers to, where functions run.
func (w *worker) forget(ctx context.Context, number uint64) error {
	w.callee.mu.Lock()
	f := w.functions[number]
	delete(w.functions, number)
	w.callee.mu.Unlock()
	if f == nil {
		return nil
	}
	drop := func(g *py.GIL) error { g.Drop(f.object); return nil }
	switch {
	case f.async: // only an event loop can close it
		return w.do(ctx, func(g *py.GIL) error {
			defer g.Drop(f.object)
			return w.closeAsync(g, f.object)
		})
	case f.generator:
		return w.do(ctx, drop)
	}
	return w.thread.Do(drop)
}

// closeAsync lets an asynchronous generator clean up.
func (w *worker) closeAsync(g *py.GIL, generator py.Object) error {
	if !g.ClassHas(generator, "aclose") {
		return nil // an iterator, which has nothing to close
	}
	closing, err := g.Attr(generator, "aclose")
	if err != nil {
		return err
	}
	args, err := g.NewTuple()
	if err != nil {
		return err
	}
	_, err = w.run(g, closing, args, 0)
	return err
}

// Close implements calls.Callee.
func (c *callee) Close() { c.host.close() }

// giveBack gives back what is kept for a host that has gone. No call is under way.
func (c *callee) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.segments {
		_ = s.Close() // never fails
	}
	var things []holds.Hold
	for _, f := range c.functions {
		things = append(things, holds.Hold{Object: f.object})
	}
	c.holds.Add(things)
	clear(c.segments)
	clear(c.functions)
}
