package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/poll"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// Stream is a queue of the host's work on one GPU, in its primary context. It does not wait for the
// default stream, nor that for it. All methods are safe for concurrent use.
type Stream struct {
	gpu    *primary.GPU
	handle driver.Stream

	mu     sync.RWMutex // read-held while work is queued, held to close
	closed bool

	waitMu sync.Mutex
	waits  []wait // what its work waits for, as far as is known
	prune  int    // how many there may be before those that were reached are looked for
}

// NewStream makes a stream on a device, by its index in this process (see [Devices]). The caller closes
// it.
func NewStream(device int) (*Stream, error) {
	const op = "make stream"
	g, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	s := &Stream{gpu: g}
	err = g.Do(func() (err error) { s.handle, err = driver.StreamCreate(); return err })
	if err != nil {
		return nil, failed(op, "", errors.Join(err, g.Close()))
	}
	return s, nil
}

// openPrimary opens the primary context of a device for one operation.
func openPrimary(op string, device int) (*primary.GPU, error) {
	all, err := Devices()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= len(all) {
		return nil, &core.Error{
			Op: op, Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(all)),
			Remedy: "cuda.Devices lists those that there are",
		}
	}
	g, err := primary.Open(device)
	if err != nil {
		return nil, failed(op, "", err)
	}
	return g, nil
}

// Device is the stream's device, by its index in this process.
func (s *Stream) Device() int { return int(s.gpu.Device) }

// Handle is the driver's CUstream, for other libraries. It is valid until Close.
func (s *Stream) Handle() uintptr { return uintptr(s.handle) }

// Wait lets work that the stream is given after it wait until the view's memory may be touched. It does
// not wait itself, and calls the driver only if the program's work is not known to be done. [Launch]
// does it for each of its arguments; Wait is for work that other libraries give to the stream.
//
// An error that wraps core.ErrUnavailable says that the memory will never be ready. If the program goes
// while the stream waits, the stream comes free, and Synchronize says so.
func (s *Stream) Wait(v *core.View) error {
	const op = "wait"
	m, _, release, err := v.Acquire()
	if err != nil {
		return about(op, v.Name(), err)
	}
	defer release()
	if err := s.enqueue(func() error { return s.waitFor(m) }); err != nil {
		return about(op, v.Name(), err)
	}
	return nil
}

// enqueue calls f while the stream cannot be closed, with its context current.
func (s *Stream) enqueue(f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return &core.Error{Kind: core.ErrClosed, Err: errors.New("the stream is closed")}
	}
	return s.gpu.Do(f)
}

// waitFor lets the stream wait for a view's memory. Only that of an [Importer] has fences.
func (s *Stream) waitFor(mem core.Memory) error {
	m, ok := mem.(*memory)
	if !ok {
		return nil
	}
	f := m.now.Load()
	if err := m.usable(); err != nil || f == nil || f.word.Reached() {
		return err
	}
	w := wait{m, f}
	err := primary.Streams.Await(w, func() error { return f.word.Wait(s.handle) })
	if err != nil {
		return err
	}
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if len(s.waits) >= s.prune {
		s.forget()
		s.prune = 2*len(s.waits) + 64
	}
	s.waits = append(s.waits, w)
	return nil
}

// forget drops the fences that were reached. The caller holds waitMu.
func (s *Stream) forget() {
	kept := s.waits[:0]
	for _, w := range s.waits {
		if reached, err := w.memory.reached(w.fence); !reached && !errors.Is(err, core.ErrClosed) || w.outcome() != nil {
			kept = append(kept, w)
		}
	}
	clear(s.waits[len(kept):])
	s.waits = kept
}

// Synchronize returns when the stream has done all work that it was given, or when ctx ends, with the
// error of that. An error that wraps core.ErrUnavailable says that a program went, or failed, whose work
// the stream waited for, so that its own work since the last Synchronize was done on memory that was
// not ready; or that the GPU could not do it.
func (s *Stream) Synchronize(ctx context.Context) error {
	const op = "synchronize"
	s.waitMu.Lock()
	waits := s.waits
	s.waits = nil
	s.waitMu.Unlock()
	err := poll.Until(ctx, func() (done bool, err error) {
		err = s.enqueue(func() (err error) { done, err = driver.StreamQuery(s.handle); return err })
		return done, err
	})
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		s.waitMu.Lock()
		s.waits = append(waits, s.waits...)
		s.waitMu.Unlock()
		return &core.Error{Op: op, Kind: err, Err: context.Cause(ctx)}
	case err != nil:
		return about(op, "", err)
	}
	for _, w := range waits {
		if err := w.outcome(); err != nil {
			return about(op, "", err)
		}
	}
	return nil
}

// Close ends the stream. What it was given is done nevertheless. Close is idempotent.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.gpu.Do(func() error { return driver.StreamDestroy(s.handle) })
	if err = errors.Join(err, s.gpu.Close()); err != nil {
		return failed("close stream", "", err)
	}
	return nil
}
