package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/imports"
	"github.com/ndbridge/ndbridge/cuda/internal/poll"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// memory is one lease's memory on a GPU: a core.Fenced.
type memory struct {
	importer   *Importer
	gpu        *gpu
	allocation *imports.Allocation
	now        atomic.Pointer[fence] // nil: nothing is to be waited for
	release    func()
	lost       atomic.Pointer[lostError]

	mu      sync.RWMutex    // read-held to look at words
	words   []*imports.Word // whose pages are held
	retired bool            // the words are not there any more
	failed  error           // what the last one said
}

// fence is what the memory waits for.
type fence struct {
	word *imports.Word
	core contract.CUDAWord
}

// wait is a fence of a memory that somebody waits for, though the memory may have a later one by now. It is a
// quiet.Waiter.
type wait struct {
	memory *memory
	fence  *fence
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
func (m *memory) open(ctx context.Context, lease contract.Lease) (err error) {
	if m.allocation, err = m.importer.cache.Open(ctx, m.gpu.GPU, lease.Handle, lease.Writable); err != nil {
		return failed("import", "", err)
	}
	return m.refence(ctx, lease.Fence)
}

// refence makes a fence that of the memory, unless it says that nothing is to be waited for.
func (m *memory) refence(ctx context.Context, to contract.Fence) error {
	w, ok := to.(contract.CUDAWord)
	if !ok {
		return nil
	}
	word, err := m.wordOf(ctx, w)
	if err != nil {
		return failed("import", "", err)
	}
	m.importer.fence(m, &fence{word, w})
	if !word.GPU() { // streams cannot wait for it
		return m.Ready(ctx)
	}
	return nil
}

// wordOf gives the word of a fence: most often it lies in a page that the memory has had to do with.
func (m *memory) wordOf(ctx context.Context, w contract.CUDAWord) (*imports.Word, error) {
	m.mu.RLock()
	for _, known := range m.words {
		if word, ok := known.Beside(w); ok {
			m.mu.RUnlock()
			return word, nil
		}
	}
	m.mu.RUnlock()
	word, err := m.importer.cache.Word(ctx, m.gpu.GPU, w)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return nil, errors.Join(&core.Error{Op: "use", Kind: core.ErrClosed}, word.Close())
	}
	m.words = append(m.words, word)
	return word, nil
}

// Fence is what must have happened before the memory may be touched. It changes when the memory is looked at
// anew, to what has been queued since.
func (m *memory) Fence() contract.Fence {
	if f := m.now.Load(); f != nil {
		return f.core
	}
	return contract.Ready{}
}

// Bytes implements core.Memory: the CPU cannot read it.
func (m *memory) Bytes() []byte { return nil }

// Addr implements core.Memory.
func (m *memory) Addr() uintptr { return m.allocation.Addr() }

// Size implements core.Memory.
func (m *memory) Size() int64 { return m.allocation.Size() }

// Ready implements core.Fenced.
func (m *memory) Ready(ctx context.Context) error {
	f := m.now.Load()
	return poll.Until(ctx, func() (bool, error) {
		reached, err := m.reached(f)
		if l := m.lost.Load(); l != nil { // after the word, which may have been written because of that
			return false, l
		}
		return reached, err
	})
}

// reached says whether the program's work before a fence, which may be nil, is done, and whether it failed.
func (m *memory) reached(f *fence) (bool, error) {
	if f == nil {
		return true, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.retired:
		return false, &core.Error{Op: "use", Kind: core.ErrClosed}
	case !f.word.Reached():
		return false, nil
	}
	if code := f.word.Failure(); code != 0 {
		return false, &core.Error{
			Op: "use", Kind: core.ErrUnavailable,
			Err:    fmt.Errorf("the program's work that was to fill it failed with CUDA error %d", code),
			Remedy: "start the program again: its GPU context is broken",
		}
	}
	return true, nil
}

// Waiting implements quiet.Waiter: whether streams that were told to wait for the fence still do.
func (w wait) Waiting() bool {
	w.memory.mu.RLock()
	defer w.memory.mu.RUnlock()
	return !w.memory.retired && !w.fence.word.Reached()
}

// usable says whether the memory may be given to a stream now, which then waits for its fence.
func (m *memory) usable() error {
	_, err := m.reached(m.now.Load())
	if l := m.lost.Load(); l != nil {
		return l
	}
	return err
}

// outcome says, of a stream that has waited for the fence, whether what it waited for was done.
func (w wait) outcome() error {
	m := w.memory
	_, err := m.reached(w.fence)
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
	_, err := m.reached(m.now.Load())
	m.mu.Lock()
	m.retired, m.failed = true, err
	words := m.words
	m.words = nil
	m.mu.Unlock()
	var errs []error
	for _, word := range words {
		errs = append(errs, word.Close())
	}
	if m.allocation != nil {
		errs = append(errs, m.allocation.Close())
	}
	return errors.Join(append(errs, m.importer.left())...)
}
