// Package primary holds the primary contexts of GPUs: those that the CUDA runtime, and with it nearly
// every library, works in.
package primary

import (
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/quiet"
)

// Streams knows what the streams of this process wait for, on all GPUs: whoever frees host memory that
// GPUs reach may wait for each of them. A process has one driver.
var Streams quiet.Calls //nolint:gochecknoglobals // see above

// GPU is a device whose primary context is kept alive. All methods are safe for concurrent use.
type GPU struct {
	Device  driver.Device
	Context driver.Context
	shared  *device
	closed  atomic.Bool
}

// device is what all users of a GPU in this process share.
type device struct {
	mu      sync.Mutex
	users   int
	context driver.Context // kept while there are users, and until the calls are made that they have left
	pinned  []uintptr      // that nobody uses: see Borrow
}

var devices sync.Map //nolint:gochecknoglobals // of *device, by driver.Device: a process has one driver

// Open keeps the primary context of a device alive until Close, making it if nobody has: then that
// takes a good part of a second.
func Open(index int) (*GPU, error) {
	number := driver.Device(index) //nolint:gosec // the caller has it from the driver
	found, _ := devices.LoadOrStore(number, new(device))
	d := found.(*device) //nolint:errcheck,forcetypeassert // nothing else is stored
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context == 0 {
		ctx, err := driver.PrimaryCtxRetain(number)
		if err != nil {
			return nil, err
		}
		d.context = ctx
	}
	d.users++
	return &GPU{Device: number, Context: d.context, shared: d}, nil
}

// Do runs f on one thread on which the context is current.
func (g *GPU) Do(f func() error) error { return driver.With(g.Context, f) }

// End is Do for calls of the driver that wait for all streams, made when none waits for another process:
// see [quiet.Calls.Make].
func (g *GPU) End(f func() error) error {
	return Streams.Make(func() error { return g.Do(f) })
}

// Close lets go of the context. If nobody else keeps it, it ends with all that is in it. Close is
// idempotent.
func (g *GPU) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	d := g.shared
	d.mu.Lock()
	d.users--
	last := d.users == 0
	d.mu.Unlock()
	if !last {
		return nil
	}
	return Streams.Make(func() error { return d.end(g.Device) }) // after the calls that its users have left
}

// end lets go of the context, if it still has no user.
func (d *device) end(number driver.Device) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users > 0 || d.context == 0 {
		return nil
	}
	_ = driver.With(d.context, func() error { // or it went with its context
		for _, addr := range d.pinned {
			_ = driver.FreeHost(addr)
		}
		return nil
	})
	d.context, d.pinned = 0, nil
	return driver.PrimaryCtxRelease(number)
}
