// Package imports opens the GPU memory of a program in the host's process, and the fence words that order
// work on it. It opens each of them once for all views and keeps it open for some seconds after the last
// one. It checks everything that the program claims.
package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/deferred"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/gpu/transfer"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// drainWait is how long Close waits for the host's own work on a program's memory.
const drainWait = 2 * time.Second

// Importer opens the GPU memory of one program in this process, in the primary contexts of its GPUs. All
// methods are safe for concurrent use.
type Importer struct {
	cache    *cache
	retiring retirements

	mu       sync.Mutex
	gpus     map[contract.UUID]*device // nil when all is over
	users    map[*Memory]struct{}
	standing int   // users, and those that are being closed
	cause    error // not nil: the program is gone, and why
	closed   bool
}

// device is a GPU with memory of the program.
type device struct {
	*gpu.Primary
	copies *transfer.Copier
}

// New makes an importer for the program whose segments d describes. The importer touches no GPU before
// Memory is called. The caller closes it.
func New(d shm.Describer) *Importer {
	return &Importer{
		cache: newCache(d),
		gpus:  make(map[contract.UUID]*device),
		users: make(map[*Memory]struct{}),
	}
}

// Memory opens the memory of a standing lease whose handle is a contract.CUDAIPC, contract.CUDAVMM or
// contract.CUDAPool. It returns a [*Memory], and the device that its view must have: a program may number the
// GPUs differently.
//
// If the handle is a contract.CUDAVMM and the lease is not writable, a kernel that writes to the memory
// faults. The driver cannot protect the memory of the other handles: the host must not write to it.
//
// The memory's Close returns at once, whatever the GPU does. It calls release, which gives the lease back, when each
// [Stream] that has awaited the memory has done all work that it was given before Close; so the program never reuses
// memory that a kernel of the host still reads. The host must finish work of other streams before Close. Memory does
// not call release if it fails.
//
// The errors wrap core.ErrProtocol or core.ErrPointer (a claim of the program is false), core.ErrDevice
// (this process does not see the GPU), core.ErrUnsupported (no CUDA: see [gpu.Available]),
// core.ErrUnavailable (the program is gone, or the GPU has no room), or core.ErrClosed, or are that of ctx.
func (i *Importer) Memory(ctx context.Context, lease contract.Lease, release func()) (core.Memory, core.Device, error) {
	m, device, err := i.open(ctx, lease, release)
	if err != nil {
		return nil, core.Device{}, err // not m: a nil *Memory would be a core.Memory
	}
	return m, device, nil
}

func (i *Importer) open(ctx context.Context, lease contract.Lease, release func()) (*Memory, core.Device, error) {
	var uuid contract.UUID
	switch h := lease.Handle.(type) {
	case contract.CUDAIPC:
		uuid = h.GPU
	case contract.CUDAVMM:
		uuid = h.GPU
	case contract.CUDAPool:
		uuid = h.GPU
	default:
		return nil, core.Device{}, &core.Error{
			Op: "import", Kind: core.ErrProtocol, Err: fmt.Errorf("a handle of type %T", lease.Handle),
		}
	}
	info, err := gpu.ByUUID(uuid)
	if err != nil {
		return nil, core.Device{}, err
	}
	m := &Memory{importer: i, release: release}
	if m.device, err = i.enter(m, info); err != nil {
		return nil, core.Device{}, err
	}
	if err := m.open(ctx, lease); err != nil {
		return nil, core.Device{}, errors.Join(err, m.close())
	}
	return m, core.Device{Kind: core.CUDA, Index: info.Index}, nil
}

// Refence replaces the fence of memory that this importer opened by a fence of later work. Streams that
// wait for the old fence go on waiting for it. The errors are those of Memory; after an error the memory
// keeps its fence.
func (*Importer) Refence(ctx context.Context, mem core.Memory, fence contract.Fence) error {
	m, ok := mem.(*Memory)
	if !ok {
		return &core.Error{Op: "import", Kind: core.ErrConfig, Err: fmt.Errorf("memory of type %T", mem)}
	}
	return m.refence(ctx, fence)
}

// enter makes m a user of the importer, and gives the GPU.
func (i *Importer) enter(m *Memory, info gpu.Device) (*device, error) {
	if g, err := i.use(m, info.UUID, nil); g != nil || err != nil {
		return g, err
	}
	// Not with the lock that Lost takes: to make a context takes long, and may wait for streams.
	p, err := gpu.Open(info.Index)
	if err != nil {
		return nil, driver.Explain("import", info.UUID.String(), err)
	}
	fresh := &device{Primary: p, copies: transfer.New(p)}
	g, err := i.use(m, info.UUID, fresh)
	if g != fresh { // somebody was faster, or all is over
		err = errors.Join(err, p.Close())
	}
	return g, err
}

// use makes m a user of the GPU that the importer has, or gets: fresh. Without either it does nothing.
func (i *Importer) use(m *Memory, uuid contract.UUID, fresh *device) (*device, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.over(); err != nil {
		return nil, err
	}
	g := cmp.Or(i.gpus[uuid], fresh)
	if g == nil {
		return nil, nil //nolint:nilnil // see above
	}
	i.gpus[uuid] = g
	i.users[m] = struct{}{}
	i.standing++
	return g, nil
}

// stand counts one more that stands, whose device is open.
func (i *Importer) stand() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.over()
	if err == nil {
		i.standing++
	}
	return err
}

// over says why nobody can use the importer any more. The lock is held.
func (i *Importer) over() error {
	switch {
	case i.closed:
		return &core.Error{Op: "import", Kind: core.ErrClosed}
	case i.cause != nil:
		return &core.Error{Op: "import", Kind: core.ErrUnavailable, Err: i.cause}
	default:
		return nil
	}
}

// fence makes f the fence of m.
func (i *Importer) fence(m *Memory, f *fence) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m.now.Store(f)
	if i.cause != nil {
		m.lost.Store(&lostError{i.cause, true})
		f.word.raise()
	}
}

// leave ends a use of the importer: nobody looks at the memory's fence after it.
func (i *Importer) leave(m *Memory) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.users, m)
}

// left is told of each user that has closed what it had open. The last one after Close ends the rest.
func (i *Importer) left() error {
	i.mu.Lock()
	i.standing--
	last := i.closed && i.standing == 0
	i.mu.Unlock()
	if !last {
		return nil
	}
	return i.end()
}

// Lost tells the importer that the program is gone, and why: its GPU work will not be done. Lost frees the
// streams of the host that wait for that work, since the CPU writes their fence words. From then on every
// use of the program's memory fails with core.ErrUnavailable and the cause, as does the Synchronize of
// such a stream. Further calls do nothing.
func (i *Importer) Lost(cause error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cause != nil {
		return
	}
	if cause == nil {
		cause = errors.New("the program is gone")
	}
	i.cause = cause
	for m := range i.users {
		f := m.now.Load()
		m.lost.Store(&lostError{cause, f != nil && !f.word.reached()})
	}
	for m := range i.users { // only now: memories may share a word
		if f := m.now.Load(); f != nil {
			f.word.raise()
		}
	}
}

// Close ends the use of the program's memory. It waits a short time for work of the host that may still
// use the memory of closed views. The error wraps core.ErrUnavailable if such work is left, or if views
// are open; their memory closes with them. While a stream of the host waits for another program, Close
// does not wait: the memory closes when the work is done, and the driver calls that wait for all streams
// follow when no stream waits for a program. Close is idempotent.
func (i *Importer) Close() error {
	i.mu.Lock()
	first := !i.closed
	i.closed = true
	i.mu.Unlock()
	if !first {
		return nil
	}
	working := !i.retiring.wait(drainWait, i.others)
	i.mu.Lock()
	standing := i.standing
	i.mu.Unlock()
	switch {
	case standing == 0:
		return i.end()
	case working && i.others():
		return nil
	case working:
		return &core.Error{
			Op: "close", Kind: core.ErrUnavailable,
			Err:    fmt.Errorf("the GPU still works on the memory of %d arrays", standing),
			Remedy: "end the work before the session",
		}
	default:
		return &core.Error{
			Op: "close", Kind: core.ErrUnavailable, Err: fmt.Errorf("%d arrays on a GPU have open views", standing),
			Remedy: "close them",
		}
	}
}

// others says whether a stream waits for another program, and none for this one.
func (i *Importer) others() bool {
	ours := func(w deferred.Waiter) bool {
		waiting, ok := w.(Wait)
		return ok && waiting.memory.importer == i
	}
	all := func(deferred.Waiter) bool { return true }
	return gpu.Streams.Awaited(all) && !gpu.Streams.Awaited(ours)
}

// end closes what is open. Nobody uses the importer any more.
func (i *Importer) end() error {
	i.mu.Lock()
	gpus := i.gpus
	i.gpus = nil
	i.mu.Unlock()
	if gpus == nil {
		return nil
	}
	errs := []error{i.cache.close()}
	for _, g := range gpus {
		errs = append(errs, g.copies.Close(), g.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return driver.Explain("close", "", err)
	}
	return nil
}
