package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// Stream is a CUDA stream of the host, in the primary context of one GPU. It does not synchronize with the
// default stream. All methods are safe for concurrent use.
type Stream struct {
	primary *gpu.Primary
	handle  driver.Stream

	mu     sync.RWMutex // read-held while work is queued, held to close
	closed bool

	waitMu sync.Mutex
	waits  []imports.Wait // what its work waits for, as far as is known
	prune  int            // how many there may be before those that were reached are looked for
}

// NewStream creates a stream on a device, by the device's index in this process: see [Devices]. The caller
// closes it. The error wraps core.ErrDevice if there is no such device; the other errors are those of
// [Available].
func NewStream(device int) (*Stream, error) {
	const op = "make stream"
	p, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	s := &Stream{primary: p}
	err = p.Do(func() (err error) { s.handle, err = driver.StreamCreate(); return err })
	if err != nil {
		return nil, driver.Explain(op, "", errors.Join(err, p.Close()))
	}
	return s, nil
}

// openPrimary opens the primary context of a device for one operation.
func openPrimary(op string, device int) (*gpu.Primary, error) {
	all, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= len(all) {
		return nil, &core.Error{
			Op: op, Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", device, len(all)),
			Remedy: "cuda.Devices lists those that there are",
		}
	}
	p, err := gpu.Open(device)
	if err != nil {
		return nil, driver.Explain(op, "", err)
	}
	return p, nil
}

// Device returns the index of the stream's device in this process.
func (s *Stream) Device() int { return int(s.primary.Device) }

// Handle returns the driver's CUstream, for other libraries. It is valid until Close.
func (s *Stream) Handle() uintptr { return uintptr(s.handle) }

// Wait makes all work that the stream is given later wait until the view's memory is ready. Wait itself
// returns at once, and calls the driver only if the program's work may still be running. [Function.Launch]
// waits for its arguments by itself; call Wait before another library gives the stream work on the view.
//
// The error wraps core.ErrUnavailable if the memory will never be ready. If the program ends while the
// stream waits, the stream goes on, and [Stream.Synchronize] returns the error.
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
	return s.primary.Do(f)
}

// waitFor makes the stream wait for a view's memory. Only the memory of programs has fences.
func (s *Stream) waitFor(mem core.Memory) error {
	m, ok := mem.(*imports.Memory)
	if !ok {
		return nil
	}
	w, err := m.Await(s.handle)
	if err != nil || w == (imports.Wait{}) {
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
	s.waits = slices.DeleteFunc(s.waits, func(w imports.Wait) bool { return !w.Waiting() && w.Outcome() == nil })
}

// Synchronize waits until the stream has done all work that it was given, or until ctx ends, and returns
// the error of ctx then. The error wraps core.ErrUnavailable if a program ended or failed before it had
// done the work that the stream waited for: what the stream did since the last Synchronize used memory that
// was not ready. It also wraps core.ErrUnavailable if the GPU could not do the stream's own work.
func (s *Stream) Synchronize(ctx context.Context) error {
	const op = "synchronize"
	s.waitMu.Lock()
	waits := s.waits
	s.waits = nil
	s.waitMu.Unlock()
	err := driver.Poll(ctx, func() (done bool, err error) {
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
		if err := w.Outcome(); err != nil {
			return about(op, "", err)
		}
	}
	return nil
}

// Close destroys the stream. The GPU still does the work that the stream was given. Close is idempotent.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.primary.Do(func() error { return driver.StreamDestroy(s.handle) })
	if err = errors.Join(err, s.primary.Close()); err != nil {
		return driver.Explain("close stream", "", err)
	}
	return nil
}
