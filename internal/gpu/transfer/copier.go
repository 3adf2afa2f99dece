// Package transfer copies arrays of any strides between a GPU and Go's memory, in pieces through pinned
// memory.
package transfer

import (
	"context"
	"errors"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// pieceSize is the most that is under way at once. While the GPU copies one piece, the CPU copies
// another.
const pieceSize = gpu.PinnedSize / 2

// Copier copies to and from one GPU. It keeps streams and pinned memory for the next copies. All methods
// are safe for concurrent use.
type Copier struct {
	primary *gpu.Primary

	mu   sync.Mutex
	idle []*lane
}

// lane is what one copy needs: a stream, and two pieces of pinned memory with an event each.
type lane struct {
	primary *gpu.Primary
	stream  driver.Stream
	memory  uintptr  // borrowed
	halves  [2]*half // the one that was started last, and the other
}

type half struct {
	addr   uintptr
	bytes  []byte
	event  driver.Event
	finish func() error // what to do when the GPU is done with it; nil: nothing
}

// New makes a copier. The caller closes it before the context.
func New(p *gpu.Primary) *Copier { return &Copier{primary: p} }

// Out copies the elements of a layout, in row-major order, from the memory at base to dst. The memory must
// be ready, and dst must have room for the elements. If ctx ends, Out returns its error, and dst may be
// partly written.
func (c *Copier) Out(ctx context.Context, dst []byte, l core.Layout, base uintptr) error {
	return c.run(func(n *lane) error {
		for p := range fetches(l, pieceSize) {
			out := dst[:p.size()]
			dst = dst[p.size():]
			err := n.next(ctx, func(h *half) error {
				h.finish = func() error { return p.gather(ctx, out, h.bytes) }
				return p.fetch(h.addr, base, n.stream)
			})
			if err != nil {
				return err
			}
		}
		return n.flush(ctx)
	})
}

// In copies src, in row-major order, over the elements of a layout of the memory at base. The memory must
// be ready. If ctx ends, In returns its error, and the elements may be partly written.
func (c *Copier) In(ctx context.Context, l core.Layout, base uintptr, src []byte) error {
	return c.run(func(n *lane) error {
		for p := range sends(l, pieceSize) {
			err := n.next(ctx, func(h *half) (err error) {
				if src, err = p.fill(ctx, h.bytes, src); err != nil {
					return err
				}
				return p.send(base, h.addr, n.stream)
			})
			if err != nil {
				return err
			}
		}
		return n.flush(ctx)
	})
}

// run calls f with a lane, in the GPU's context.
func (c *Copier) run(f func(*lane) error) error {
	return c.primary.Do(func() error {
		n, err := c.take()
		if err != nil {
			return err
		}
		if err := f(n); err != nil {
			// Whatever is under way still uses the pinned memory.
			return errors.Join(err, driver.StreamSynchronize(n.stream), n.end())
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle = append(c.idle, n)
		return nil
	})
}

// take gives a lane that nobody uses. The context is current.
func (c *Copier) take() (*lane, error) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		defer c.mu.Unlock()
		n := c.idle[last]
		c.idle = c.idle[:last]
		return n, nil
	}
	c.mu.Unlock() // to allocate may wait for the GPU
	return newLane(c.primary)
}

// newLane makes a lane in the GPU's context, which is current.
func newLane(p *gpu.Primary) (n *lane, err error) {
	n = &lane{primary: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.end())
			n = nil
		}
	}()
	if n.stream, err = driver.StreamCreate(); err != nil {
		return n, err
	}
	if n.memory, err = p.Borrow(); err != nil {
		return n, err
	}
	for i := range n.halves {
		addr := n.memory + uintptr(i)*pieceSize
		h := &half{addr: addr, bytes: gpu.Pinned(addr, pieceSize)}
		n.halves[i] = h
		if h.event, err = driver.EventCreate(driver.EventDisableTiming); err != nil {
			return n, err
		}
	}
	return n, nil
}

// end gives up the lane, on which nothing is under way. The context is current.
func (n *lane) end() error {
	var errs []error
	for _, h := range n.halves {
		if h != nil && h.event != 0 {
			errs = append(errs, driver.EventDestroy(h.event))
		}
	}
	if n.memory != 0 {
		errs = append(errs, n.primary.GiveBack(n.memory))
	}
	if n.stream != 0 {
		errs = append(errs, driver.StreamDestroy(n.stream))
	}
	return errors.Join(errs...)
}

// next gives one half to start, which gives the GPU work on it, when what was done with it before is
// done.
func (n *lane) next(ctx context.Context, start func(*half) error) error {
	n.halves[0], n.halves[1] = n.halves[1], n.halves[0]
	h := n.halves[0]
	if err := h.wait(ctx); err != nil {
		return err
	}
	h.finish = func() error { return nil }
	if err := start(h); err != nil {
		return err
	}
	return driver.EventRecord(h.event, n.stream)
}

// flush finishes both halves, the older first.
func (n *lane) flush(ctx context.Context) error {
	if err := n.halves[1].wait(ctx); err != nil {
		return err
	}
	return n.halves[0].wait(ctx)
}

// wait waits until the GPU is done with the half, and finishes its piece.
func (h *half) wait(ctx context.Context) error {
	if h.finish == nil {
		return ctx.Err()
	}
	if err := driver.Poll(ctx, func() (bool, error) { return driver.EventQuery(h.event) }); err != nil {
		return err
	}
	finish := h.finish
	h.finish = nil
	if err := finish(); err != nil {
		return err
	}
	return ctx.Err()
}

// Close frees what the copier keeps. No copy may be under way.
func (c *Copier) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	if len(idle) == 0 {
		return nil
	}
	return c.primary.Do(func() error {
		var errs []error
		for _, n := range idle {
			errs = append(errs, n.end())
		}
		return errors.Join(errs...)
	})
}
