package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/imports"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
	"github.com/ndbridge/ndbridge/cuda/internal/quiet"
	"github.com/ndbridge/ndbridge/cuda/internal/transfer"
)

// drainWait is how long Close waits for the host's own work on a program's memory.
const drainWait = 2 * time.Second

// Describer lends the descriptors of segments: the part of [contract.Producer] that an [Importer] needs.
type Describer interface {
	Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error)
}

// Importer opens GPU memory of one program in this process, in the primary contexts of its GPUs. What
// was opened once is shared by all views of it, and stays open for some seconds after the last one. All
// methods are safe for concurrent use.
type Importer struct {
	cache    *imports.Cache
	retiring retirements

	mu       sync.Mutex
	gpus     map[contract.UUID]*gpu // nil when all is over
	users    map[*memory]struct{}
	standing int   // users, and those that are being closed
	cause    error // not nil: the program is gone, and why
	closed   bool
}

// gpu is a GPU with memory of the program.
type gpu struct {
	*primary.GPU
	copies *transfer.Copier

	mu     sync.Mutex
	events []driver.Event // free ones
}

// NewImporter makes an importer, which touches no GPU before it is asked for memory. It must be closed.
func NewImporter(d Describer) *Importer {
	return &Importer{
		cache: imports.New(d),
		gpus:  make(map[contract.UUID]*gpu),
		users: make(map[*memory]struct{}),
	}
}

// Memory opens the memory of a standing lease whose handle is a contract.CUDAIPC, contract.CUDAVMM or
// contract.CUDAPool, for a view whose device is the one that it returns: programs may number the GPUs
// otherwise than the host does. It is a [core.Fenced] that Launch, Copy and the streams of this package
// know how to wait for.
//
// Memory of physical allocations (contract.CUDAVMM) whose lease is not writable is mapped so that kernels
// that write to it fault. The driver cannot do that for the other handles: there, not to write is up to
// the host.
//
// The memory's Close returns at once. It calls release, which gives the lease back, when all work is
// done that the GPU's primary context was given before, by this package or by others; so the program
// never uses memory again that a kernel of the host still reads. Work in other contexts must be done
// before Close. (A context whose stream is being captured can say nothing of its work, and asking breaks
// the capture: close no views of a GPU meanwhile.) After an error of Memory, release is not called.
//
// The errors wrap core.ErrProtocol or core.ErrPointer (what the program said is not so), core.ErrDevice
// (this process does not see the GPU), core.ErrUnsupported (no CUDA: see [Available]),
// core.ErrUnavailable (the program is gone, or the GPU has no room), core.ErrClosed, or the error of ctx.
func (i *Importer) Memory(ctx context.Context, lease contract.Lease, release func()) (core.Memory, core.Device, error) {
	m, device, err := i.open(ctx, lease, release)
	if err != nil {
		return nil, core.Device{}, err // not m: a nil *memory would be a core.Memory
	}
	return m, device, nil
}

func (i *Importer) open(ctx context.Context, lease contract.Lease, release func()) (*memory, core.Device, error) {
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
	info, err := deviceOf(uuid)
	if err != nil {
		return nil, core.Device{}, err
	}
	m := &memory{importer: i, release: release}
	if m.gpu, err = i.enter(m, info); err != nil {
		return nil, core.Device{}, err
	}
	if err := m.open(ctx, lease); err != nil {
		return nil, core.Device{}, errors.Join(err, m.close())
	}
	return m, core.Device{Kind: core.CUDA, Index: info.Index}, nil
}

// Refence gives memory that this importer has opened another fence, of later work, in the place of the one it
// has. Streams that wait for the old one do so until that is reached. The errors are those of Memory; after one
// the memory has the fence that it had.
func (*Importer) Refence(ctx context.Context, mem core.Memory, fence contract.Fence) error {
	m, ok := mem.(*memory)
	if !ok {
		return &core.Error{Op: "import", Kind: core.ErrConfig, Err: fmt.Errorf("memory of type %T", mem)}
	}
	return m.refence(ctx, fence)
}

// enter makes m a user of the importer, and gives the GPU.
func (i *Importer) enter(m *memory, info DeviceInfo) (*gpu, error) {
	if g, err := i.use(m, info.UUID, nil); g != nil || err != nil {
		return g, err
	}
	// Not with the lock that Lost takes: to make a context takes long, and may wait for streams.
	p, err := primary.Open(info.Index)
	if err != nil {
		return nil, failed("import", info.UUID.String(), err)
	}
	fresh := &gpu{GPU: p, copies: transfer.New(p)}
	g, err := i.use(m, info.UUID, fresh)
	if g != fresh { // somebody was faster, or all is over
		err = errors.Join(err, p.Close())
	}
	return g, err
}

// use makes m a user of the GPU that the importer has, or gets: fresh. Without either it does nothing.
func (i *Importer) use(m *memory, uuid contract.UUID, fresh *gpu) (*gpu, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.closed:
		return nil, &core.Error{Op: "import", Kind: core.ErrClosed}
	case i.cause != nil:
		return nil, &core.Error{Op: "import", Kind: core.ErrUnavailable, Err: i.cause}
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

// fence makes f the fence of m.
func (i *Importer) fence(m *memory, f *fence) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m.now.Store(f)
	if i.cause != nil {
		m.lost.Store(&lostError{i.cause, true})
		f.word.Raise()
	}
}

// leave ends a use of the importer: nobody looks at the memory's fence after it.
func (i *Importer) leave(m *memory) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.users, m)
}

// left is told of each user that has closed what it had open. The last one after Close ends the rest.
func (i *Importer) left() error {
	i.mu.Lock()
	i.standing--
	over := i.closed && i.standing == 0
	i.mu.Unlock()
	if !over {
		return nil
	}
	return i.end()
}

// Lost says that the program is gone, and why: its work on GPUs will not be done. Streams of the host
// that wait for that work come free, since the CPU writes the words that they wait for, and everything
// that is asked of the program's memory from then on fails with core.ErrUnavailable and the cause, as
// does the Synchronize of such a stream. Further calls do nothing.
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
		m.lost.Store(&lostError{cause, f != nil && !f.word.Reached()})
	}
	for m := range i.users { // only now: memories may share a word
		if f := m.now.Load(); f != nil {
			f.word.Raise()
		}
	}
}

// Close ends the use of the program's memory. It waits, not for long, for the work of the host that may
// still use memory of closed views; an error that wraps core.ErrUnavailable says that there is such
// work, or that views are still open. What they use is closed with them. While a stream of the host waits
// for another program, Close waits for nothing: what that work may use is closed when it is done, and what
// can be closed only by waiting for all streams is closed when none waits for a program any more. Close is
// idempotent.
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
	ours := func(w quiet.Waiter) bool {
		waiting, ok := w.(wait)
		return ok && waiting.memory.importer == i
	}
	all := func(quiet.Waiter) bool { return true }
	return primary.Streams.Awaited(all) && !primary.Streams.Awaited(ours)
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
	errs := []error{i.cache.Close()}
	for _, g := range gpus {
		errs = append(errs, g.copies.Close(), g.end())
	}
	if err := errors.Join(errs...); err != nil {
		return failed("close", "", err)
	}
	return nil
}
