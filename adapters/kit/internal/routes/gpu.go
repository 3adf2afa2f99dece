package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Located is an array of whose memory the CUDA driver was asked.
type Located struct {
	Array
	Pointer *gpu.Pointer // what the driver says; nil if it does not know the memory
	OnGPU   bool         // it is to be placed by [Router.ShareGPU], and else by [Router.Share]
}

// Inspect asks the CUDA driver about an array's memory, and corrects its device: a protocol may say
// nothing about it, and much that is pinned or managed is told of as ordinary memory. deviceKnown says
// that the number of the layout's device was said by the framework, and so must be right.
//
// For an array that is said to be on a GPU the error wraps core.ErrUnsupported or core.ErrDevice if this
// process can have none, and core.ErrPointer if the memory is not there, or not all of it, or on another
// device.
func (*Router) Inspect(a Array, deviceKnown bool) (Located, error) {
	here := Located{Array: a}
	claimed := a.Layout.Device()
	onGPU := claimed.Kind == core.CUDA || claimed.Kind == core.CUDAManaged
	if err := Reachable(claimed); onGPU && err != nil {
		return here, err
	}
	if a.Layout.Len() == 0 || !gpu.Active() {
		return here, nil
	}
	lo, n, _, err := a.extent()
	if err != nil {
		return here, err
	}
	p, err := gpu.Inspect(lo, n)
	switch {
	case err != nil && !onGPU:
		return here, nil // ordinary memory, of which the CPU's routes find out more
	case err != nil:
		return here, err
	case p.Kind == gpu.KindPinned:
		onGPU = false
	case onGPU && deviceKnown && claimed.Index != p.Device.Index:
		return here, pointerError(lo, "the array is said to be on %v, and its memory is on %v", claimed, p.Device)
	case !onGPU && p.Device.Kind == core.CUDA:
		return here, pointerError(lo, "the array is said to be in host memory, and its memory is on %v", p.Device)
	}
	here.Pointer, here.OnGPU = &p, onGPU
	here.Layout, err = onDevice(a.Layout, p.Device)
	return here, err
}

// Reachable says why an array on a GPU cannot be had in this process: nil if CUDA is in use here. The
// error wraps core.ErrUnsupported if this plugin has no CUDA, and else core.ErrDevice.
func Reachable(d core.Device) error {
	err := gpu.InUse()
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	about := *e
	about.Op, about.Err = "read", fmt.Errorf("the array is on %v: %w", d, e.Err)
	return &about
}

// onDevice gives the layout of the same array elsewhere.
func onDevice(l core.Layout, d core.Device) (core.Layout, error) {
	spec := l.Spec()
	spec.Device = d
	return core.NewLayout(spec)
}

// Order says which work an array on a GPU waits for: the first of Mark, Stream and Framework that is
// set; if none is, everything that the array's context was given until now.
type Order struct {
	Mark      *export.Mark
	Stream    uintptr // a CUstream, or 1 for the legacy default stream of the array's context
	Framework bool    // what the framework has made Queue wait for is enough

	// Awaited says that nobody is told of the array before everything is done that its device was given until then: if none of
	// the above is set, memory that is not copied needs no fence.
	Awaited bool

	// Queue, if it is not nil, is the one that a framework was given for the array.
	Queue *export.Queue
}

// Rest is what remains to be done of a placement, and takes time: a copy to host memory, or waiting for
// a GPU. It is called exactly once, and obeys its context.
type Rest func(ctx context.Context) (Placement, error)

// ShareGPU is [Router.Share] for an array that Inspect found to be on a GPU. It takes over the order's
// queue. What can be done at once is done; else there is a rest instead of a placement.
func (r *Router) ShareGPU(a Located, want Want, order Order) (Placement, Rest, error) {
	h := &handOver{router: r, array: a, want: want, queue: order.Queue}
	p, rest, err := h.begin(order)
	if rest == nil {
		h.end()
		if err != nil {
			h.undo()
		}
	}
	return p, rest, err
}

// Refence gives a fence of now for memory that a lease without a copy stands on, which is what the fence
// stands on: it comes after all work that the memory's context was given until now. It reports false if the
// memory is not what it was, or if that would take time.
func (r *Router) Refence(p *gpu.Pointer) (fence kit.Memory, ok bool) {
	if !p.Stands() {
		return kit.Memory{}, false
	}
	word, err := r.GPU.FenceAll(*p)
	if word == nil || err != nil {
		return kit.Memory{}, false
	}
	return gpuMemory(export.Memory{}, word), true
}

// Await is for an array in host memory that the CUDA driver knows, before the CPU reads it: a GPU may be
// writing it. It takes over the order's queue, and gives what remains to be waited for, or nil.
func (r *Router) Await(a Located, order Order) (wait func(context.Context) error, err error) {
	h := &handOver{router: r, array: a, queue: order.Queue}
	ordered, err := h.order(order)
	if errors.Is(err, core.ErrDevice) { // its device has no context that could be at work
		h.end()
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	done := false
	if err == nil && ordered {
		done, err = h.queue.Done()
	}
	if done || err != nil {
		h.end()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer h.end()
		if !ordered {
			return h.queue.Synchronize(ctx)
		}
		return h.queue.Wait(ctx)
	}, nil
}

// handOver is one array on its way from a GPU.
type handOver struct {
	router *Router
	array  Located
	want   Want
	queue  *export.Queue

	reason core.Reason
	export export.Memory
	layout core.Layout
	route  core.Route
	block  *export.Block
}

func (h *handOver) begin(order Order) (p Placement, rest Rest, err error) {
	if h.want.Writable && h.array.Layout.ReadOnly() {
		return p, nil, readOnlyError()
	}
	if h.want.NoCopy && h.want.Spared != "" {
		return p, nil, notShared(h.want.Spared, h.want)
	}
	if err := h.decide(); err != nil {
		return p, nil, err
	}
	if order.Awaited && order.Mark == nil && order.Stream == 0 && !order.Framework && h.reason == "" {
		return h.placement(nil), nil, nil
	}
	ordered, err := h.order(order)
	if err != nil {
		return p, nil, err
	}
	if !ordered || h.toHost() {
		return p, func(ctx context.Context) (Placement, error) { return h.finish(ctx, ordered) }, nil
	}
	return h.place()
}

// decide finds the route, and whether a copy is wanted if it takes one.
func (h *handOver) decide() error {
	pointer := *h.array.Pointer
	h.reason = h.want.Reason
	if !slices.Contains(h.router.hostGPUs, pointer.GPU) {
		h.reason = contract.ReasonHostWithoutGPU
	}
	if h.reason == "" {
		var err error
		h.export, err = h.router.GPU.Export(pointer)
		switch {
		case errors.Is(err, core.ErrNotShared):
			h.reason = contract.ReasonNotExportable
		case err != nil:
			return err
		default:
			h.route = pointer.Route
			if h.want.Spared != "" {
				h.route = contract.RouteCUDAStaged
			}
			h.layout, err = at(h.array.Layout, int64(h.array.Addr-h.export.Base), false)
			return err
		}
	}
	if h.want.NoCopy || h.want.Writable {
		return notShared(h.reason, h.want)
	}
	return nil
}

func (h *handOver) toHost() bool { return h.reason == contract.ReasonHostWithoutGPU }

// order makes the queue wait; ordered is false if that takes time.
func (h *handOver) order(o Order) (ordered bool, err error) {
	if q := h.queue; q == nil || !q.On(*h.array.Pointer) {
		if h.queue, err = h.router.GPU.Queue(*h.array.Pointer); err != nil {
			h.queue = q
			return false, err
		}
		if q != nil {
			err = h.queue.AfterQueue(q)
			q.Close()
			if err != nil {
				return false, err
			}
		}
	}
	switch {
	case o.Mark != nil:
		return true, h.queue.AfterMark(o.Mark)
	case o.Stream != 0:
		return true, h.queue.AfterStream(&h.router.GPU, o.Stream)
	case o.Framework:
		return true, nil
	default:
		return h.queue.AfterContext()
	}
}

// place does what takes no time: it copies on the GPU if there must be a copy, and fences.
func (h *handOver) place() (p Placement, rest Rest, err error) {
	if h.reason != "" && h.block == nil {
		switch err := h.copyOnGPU(); {
		case errors.Is(err, core.ErrNotShared): // not even a copy can be exported
			return p, func(ctx context.Context) (Placement, error) { return h.finish(ctx, true) }, nil
		case err != nil:
			return p, nil, err
		}
	}
	word, ok, err := h.queue.Fence()
	switch {
	case err != nil:
		return p, nil, err
	case !ok:
		return p, func(ctx context.Context) (Placement, error) { return h.finish(ctx, true) }, nil
	}
	return h.placement(word), nil, nil
}

// finish does what takes time.
func (h *handOver) finish(ctx context.Context, ordered bool) (p Placement, err error) {
	defer h.end()
	defer func() {
		if err != nil {
			h.undo()
		}
	}()
	if !ordered {
		if err := h.queue.Synchronize(ctx); err != nil {
			return p, err
		}
	}
	if h.reason != "" && h.block == nil {
		err := h.copyOnGPU()
		if h.toHost() || errors.Is(err, core.ErrNotShared) {
			return h.copyToHost(ctx)
		}
		if err != nil {
			return p, err
		}
	}
	if err := h.queue.Wait(ctx); err != nil {
		return p, err
	}
	return h.placement(nil), nil
}

// end gives the queue back.
func (h *handOver) end() {
	if h.queue != nil {
		h.queue.Close()
	}
}

// undo gives up what a placement would hold.
func (h *handOver) undo() {
	if h.block != nil {
		h.router.GPU.Free(h.block)
		return
	}
	_ = h.export.Close() // it only reads
}

// copyOnGPU copies the array into memory that can be exported.
func (h *handOver) copyOnGPU() error {
	if h.toHost() {
		return nil
	}
	plan, err := planCopy(h.array.Array)
	if err != nil {
		return err
	}
	block, err := h.router.GPU.Allocate(h.queue, plan.size)
	if err != nil {
		return err
	}
	h.block, h.export, h.route = block, block.Memory(), contract.RouteCUDAStaged
	device := core.Device{Kind: core.CUDA, Index: h.array.Layout.Device().Index}
	if h.layout, err = onDevice(plan.layout, device); err != nil {
		return err
	}
	return plan.rows(func(offset int64, rows export.Rows) error {
		return h.queue.Copy(block.Addr+uintptr(offset), rows)
	})
}

// copyToHost copies the array into staging memory of the host.
func (h *handOver) copyToHost(ctx context.Context) (Placement, error) {
	plan, err := planCopy(h.array.Array)
	if err != nil {
		return Placement{}, err
	}
	l, err := onDevice(plan.layout, core.Device{})
	if err != nil {
		return Placement{}, err
	}
	c, err := h.router.staging.fill(nil, l, plan.size, func(m *memfile, offset int64) (err error) {
		shm.Use(m.file, func() {
			err = withMapping(m.file, offset, plan.size, func(to uintptr) error {
				return plan.rows(func(at int64, rows export.Rows) error {
					return h.queue.CopyToHost(ctx, to+uintptr(at), rows)
				})
			})
		})
		return err
	})
	if err != nil {
		return Placement{}, err
	}
	return Placement{
		Layout: c.Layout, Memory: kit.HostMemory(c.Backing), Route: contract.RouteStaged, Reason: h.reason, Drop: c.Drop,
	}, nil
}

// placement is for memory of the GPU; word is nil if it may be touched at once.
func (h *handOver) placement(word *export.FenceWord) Placement {
	block := h.block
	p := Placement{Layout: h.layout, Memory: gpuMemory(h.export, word), Route: h.route, Reason: cmp.Or(h.reason, h.want.Spared)}
	if block != nil {
		block.Copied(word)
		p.Drop = func() { h.router.GPU.Free(block) }
	}
	return p
}
