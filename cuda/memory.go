package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/imports"
	"github.com/ndbridge/ndbridge/cuda/internal/poll"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// memory is one lease's memory on a GPU: a core.Fenced.
type memory struct {
	importer   *Importer
	gpu        *gpu
	allocation *imports.Allocation
	word       *imports.Word // nil: nothing is to be waited for
	release    func()
	lost       atomic.Pointer[lostError]

	mu      sync.RWMutex // read-held to look at the word
	retired bool         // the word is not there any more
	failed  error        // what it said at last
}

// lostError is why memory cannot be used any more: an error that wraps core.ErrUnavailable.
type lostError struct {
	cause  error
	before bool // the program went before the memory was ready
}

// Error gives the cause: what reports it says the category itself.
func (l *lostError) Error() string { return l.cause.Error() }

// Is makes it match its category.
func (*lostError) Is(target error) bool { return target == core.ErrUnavailable }

// Unwrap gives the cause.
func (l *lostError) Unwrap() error { return l.cause }

// open opens what the lease names. After an error, close closes what was opened.
func (m *memory) open(ctx context.Context, lease core.Lease) (err error) {
	if m.allocation, err = m.importer.cache.Open(ctx, m.gpu.GPU, lease.Handle, lease.Writable); err != nil {
		return failed("import", "", err)
	}
	fence, ok := lease.Fence.(core.CUDAWord)
	if !ok {
		return nil
	}
	word, err := m.importer.cache.Word(ctx, m.gpu.GPU, fence)
	if err != nil {
		return failed("import", "", err)
	}
	m.importer.fence(m, word)
	if !word.GPU() { // streams cannot wait for it
		return m.Ready(ctx)
	}
	return nil
}

// Bytes implements core.Memory: the CPU cannot read it.
func (m *memory) Bytes() []byte { return nil }

// Addr implements core.Memory.
func (m *memory) Addr() uintptr { return m.allocation.Addr() }

// Size implements core.Memory.
func (m *memory) Size() int64 { return m.allocation.Size() }

// Ready implements core.Fenced.
func (m *memory) Ready(ctx context.Context) error {
	return poll.Until(ctx, func() (bool, error) {
		reached, err := m.reached()
		if l := m.lost.Load(); l != nil { // after the word, which may have been written because of that
			return false, l
		}
		return reached, err
	})
}

// reached says whether the program's work on the memory is done, and whether it failed.
func (m *memory) reached() (bool, error) {
	if m.word == nil {
		return true, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.retired:
		return false, &core.Error{Op: "use", Kind: core.ErrClosed}
	case !m.word.Reached():
		return false, nil
	}
	if code := m.word.Failure(); code != 0 {
		return false, &core.Error{
			Op: "use", Kind: core.ErrUnavailable,
			Err:    fmt.Errorf("the program's work that was to fill it failed with CUDA error %d", code),
			Remedy: "start the program again: its GPU context is broken",
		}
	}
	return true, nil
}

// Waiting implements quiet.Waiter: whether streams that were told to wait for the memory still do.
func (m *memory) Waiting() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return !m.retired && !m.word.Reached()
}

// usable says whether the memory may be given to a stream now, which then waits for its fence.
func (m *memory) usable() error {
	_, err := m.reached()
	if l := m.lost.Load(); l != nil {
		return l
	}
	return err
}

// outcome says, of a stream that has waited for the memory, whether what it waited for was done.
func (m *memory) outcome() error {
	_, err := m.reached()
	if l := m.lost.Load(); l != nil {
		if l.before {
			return l
		}
		return nil
	}
	if errors.Is(err, core.ErrClosed) {
		m.mu.RLock()
		defer m.mu.RUnlock()
		return m.failed
	}
	return err
}

// Close implements core.Memory: it retires the memory once the GPU's work until now is done.
func (m *memory) Close() error {
	m.importer.retiring.add(m, m.gpu.record())
	primary.Streams.Working(work{m})
	return nil
}

// work is that which the GPU has to do until memory that was closed is retired.
type work struct{ memory *memory }

// Waiting implements quiet.Waiter.
func (w work) Waiting() bool {
	w.memory.mu.RLock()
	defer w.memory.mu.RUnlock()
	return !w.memory.retired
}

// close closes what is open, when nobody uses it any more.
func (m *memory) close() error {
	m.importer.leave(m)
	_, err := m.reached()
	m.mu.Lock()
	m.retired, m.failed = true, err
	m.mu.Unlock()
	var errs []error
	if m.word != nil {
		errs = append(errs, m.word.Close())
	}
	if m.allocation != nil {
		errs = append(errs, m.allocation.Close())
	}
	return errors.Join(append(errs, m.importer.left())...)
}
