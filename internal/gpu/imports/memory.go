package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Memory is the memory of one lease on a GPU: a [core.Fenced] that package cuda orders its streams by. All
// methods are safe for concurrent use.
type Memory struct {
	importer   *Importer
	device     *device
	allocation *allocation
	own        *Own            // nil: it is a program's
	handle     contract.Handle // of a program's
	writable   bool
	now        atomic.Pointer[fence] // nil: nothing is to be waited for
	release    func()
	lost       atomic.Pointer[lostError]

	lending sync.Mutex
	lent    io.Closer // what other programs have it by; nil: none has had it

	mu      sync.RWMutex // read-held to look at words
	uses    []use        // by streams; once the memory is closed, those that go on
	words   []*fenceWord // whose pages are held
	retired bool         // the words are not there any more
	failed  error        // what the last one said
}

// use is the work of a stream on the memory, until the stream's count of what it was given.
type use struct {
	stream *Stream
	until  uint64
}

// fence is what the memory waits for.
type fence struct {
	word *fenceWord
	core contract.CUDAWord
}

// lostError is why memory cannot be used any more: an error that wraps core.ErrUnavailable.
type lostError struct {
	cause  error
	before bool // the program went before the memory was ready
}

// Error returns the cause: the caller that reports it names the category itself.
func (l *lostError) Error() string { return l.cause.Error() }

// Is makes it match its category.
func (*lostError) Is(target error) bool { return target == core.ErrUnavailable }

// Unwrap returns the cause.
func (l *lostError) Unwrap() error { return l.cause }

// open opens what the lease names. After an error, close closes what was opened.
func (m *Memory) open(ctx context.Context, lease contract.Lease) (err error) {
	m.handle, m.writable = lease.Handle, lease.Writable
	if m.allocation, err = m.importer.cache.open(ctx, m.device.Primary, lease.Handle, lease.Writable); err != nil {
		return driver.Explain("import", "", err)
	}
	return m.refence(ctx, lease.Fence)
}

// refence makes a fence that of the memory, unless it says that nothing is to be waited for.
func (m *Memory) refence(ctx context.Context, to contract.Fence) error {
	w, ok := to.(contract.CUDAWord)
	if !ok {
		return nil
	}
	word, err := m.wordOf(ctx, w)
	if err != nil {
		return driver.Explain("import", "", err)
	}
	m.importer.fence(m, &fence{word, w})
	if !word.onGPU() { // streams cannot wait for it
		return m.Ready(ctx)
	}
	return nil
}

// wordOf finds the fence word: most often it lies in a page that the memory holds already.
func (m *Memory) wordOf(ctx context.Context, w contract.CUDAWord) (*fenceWord, error) {
	m.mu.RLock()
	for _, known := range m.words {
		if word, ok := known.beside(w); ok {
			m.mu.RUnlock()
			return word, nil
		}
	}
	m.mu.RUnlock()
	word, err := m.importer.cache.word(ctx, m.device.Primary, w)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return nil, errors.Join(&core.Error{Op: "use", Kind: core.ErrClosed}, word.close())
	}
	m.words = append(m.words, word)
	return word, nil
}

// Device returns the device that the memory lies on.
func (m *Memory) Device() driver.Device { return m.device.Device }

// Fence returns what must have happened before the memory may be touched. A refresh replaces it by a later one.
func (m *Memory) Fence() contract.Fence {
	if f := m.now.Load(); f != nil {
		return f.core
	}
	return contract.Ready{}
}

// Bytes implements core.Memory: the CPU cannot read it.
func (m *Memory) Bytes() []byte { return nil }

// Addr implements core.Memory.
func (m *Memory) Addr() uintptr { return m.allocation.addr }

// Size implements core.Memory.
func (m *Memory) Size() int64 { return m.allocation.size }

// Ready implements core.Fenced.
func (m *Memory) Ready(ctx context.Context) error {
	f := m.now.Load()
	return driver.Poll(ctx, func() (bool, error) {
		reached, err := m.reached(f)
		if l := m.lost.Load(); l != nil { // after the word, which may have been written because of that
			return false, l
		}
		return reached, err
	})
}

// reached reports whether the program's work before a fence, which may be nil, is done, and whether it failed.
func (m *Memory) reached(f *fence) (bool, error) {
	if f == nil {
		return true, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.retired:
		return false, &core.Error{Op: "use", Kind: core.ErrClosed}
	case !f.word.reached():
		return false, nil
	}
	if code := f.word.failure(); code != 0 {
		return false, &core.Error{
			Op: "use", Kind: core.ErrUnavailable,
			Err:    fmt.Errorf("the program's work that was to fill it failed with CUDA error %d", code),
			Remedy: "start the program again: its GPU context is broken",
		}
	}
	return true, nil
}

// Usable returns nil if a stream may be given the memory now, after [Stream.Await]. Otherwise the error
// wraps core.ErrUnavailable or core.ErrClosed.
func (m *Memory) Usable() error {
	_, err := m.reached(m.now.Load())
	if l := m.lost.Load(); l != nil {
		return l
	}
	return err
}

// CopyOut implements core.Copier.
func (m *Memory) CopyOut(ctx context.Context, dst []byte, l core.Layout) error {
	return m.copied("copy", func() error { return m.device.copies.Out(ctx, dst, l, m.Addr()) })
}

// CopyIn implements core.Copier.
func (m *Memory) CopyIn(ctx context.Context, l core.Layout, src []byte) error {
	return m.copied("put", func() error { return m.device.copies.In(ctx, l, m.Addr(), src) })
}

// copied calls f, which copies. The memory must be that of a living program until f returns.
func (m *Memory) copied(op string, f func() error) error {
	err := m.Usable()
	if err == nil {
		err = m.reading(f)
	}
	if err == nil {
		err = m.Usable()
	}
	if err != nil {
		return driver.Explain(op, "", err)
	}
	return nil
}

// reading calls f, which has read the memory when it returns. The program can wait for that.
func (m *Memory) reading(f func() error) error {
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	return f()
}

// begin begins a read that end ends. The program can wait for that.
func (m *Memory) begin() (end func(), err error) {
	fence := m.now.Load()
	if fence == nil || !fence.word.onGPU() {
		return func() {}, nil
	}
	r, err := fence.word.page.begin(new(int)) // no other reader is the same
	return r.end, err
}

// usedBy notes that a stream uses the memory.
func (m *Memory) usedBy(s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.uses, func(u use) bool { return u.stream == s }) {
		m.uses = append(m.uses, use{stream: s})
	}
}

// Close implements core.Memory. The memory is retired when the streams that used it have done the work that they have
// now. Close makes no call of the driver.
func (m *Memory) Close() error {
	m.mu.Lock()
	for i := range m.uses {
		m.uses[i].until = m.uses[i].stream.given.Add(1)
	}
	m.mu.Unlock()
	m.importer.retiring.add(m)
	gpu.Streams.Working(work{m})
	return nil
}

// retire closes what is open and gives the lease back if no stream uses the memory any more, and reports that.
func (m *Memory) retire() bool {
	m.uses = slices.DeleteFunc(m.uses, func(u use) bool {
		over := u.stream.reached(u.until)
		if over && u.stream.broken.Load() {
			for _, w := range m.words {
				w.page.endOf(u.stream)
			}
		}
		return over
	})
	if len(m.uses) > 0 {
		return false
	}
	// Before the release: a program may free the memory as soon as it has its lease.
	_ = m.close() // of what is open never fails, and there is nobody to tell
	m.release()
	return true
}

// close closes what is open, when nobody uses it any more.
func (m *Memory) close() error {
	m.importer.leave(m)
	_, err := m.reached(m.now.Load())
	m.mu.Lock()
	m.retired, m.failed = true, err
	words := m.words
	m.words = nil
	m.mu.Unlock()
	var errs []error
	if m.lent != nil { // nobody lends it any more
		errs = append(errs, m.lent.Close())
	}
	for _, word := range words {
		errs = append(errs, word.close())
	}
	if m.allocation != nil {
		errs = append(errs, m.allocation.close())
	}
	return errors.Join(append(errs, m.importer.left())...)
}

// Wait is one fence of a memory that a stream waits for: the memory may have a later fence by now.
type Wait struct {
	memory *Memory
	fence  *fence
}

// Waiting implements deferred.Waiter. It reports whether streams still wait for the fence.
func (w Wait) Waiting() bool {
	w.memory.mu.RLock()
	defer w.memory.mu.RUnlock()
	return !w.memory.retired && !w.fence.word.reached()
}

// Outcome returns, after a stream has waited for the fence, nil if the program did the work before it.
// Otherwise the error wraps core.ErrUnavailable.
func (w Wait) Outcome() error {
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

// work is what the GPU has to do before memory that was closed is retired.
type work struct{ memory *Memory }

// Waiting implements deferred.Waiter.
func (w work) Waiting() bool {
	w.memory.mu.RLock()
	defer w.memory.mu.RUnlock()
	return !w.memory.retired
}
