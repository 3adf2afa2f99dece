package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// Stream is a CUDA stream of the host, in the primary context of one GPU. It does not synchronize with the
// default stream. All methods are safe for concurrent use.
type Stream struct{ stream *imports.Stream }

// NewStream creates a stream on a device, by the device's index in this process: see [Devices]. The caller
// closes it. The error wraps core.ErrDevice if there is no such device; the other errors are those of
// [Available].
func NewStream(device int) (*Stream, error) {
	const op = "make stream"
	p, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	s, err := imports.NewStream(p)
	if err != nil {
		return nil, driver.Explain(op, "", err)
	}
	return &Stream{s}, nil
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
func (s *Stream) Device() int { return int(s.stream.Device()) }

// Handle returns the driver's CUstream, for other libraries. It is valid until Close.
func (s *Stream) Handle() uintptr { return uintptr(s.stream.Handle) }

// Wait makes all work that the stream is given later wait until the view's memory is ready. Wait itself
// returns at once, and calls the driver only if the program's work may still be running. [Function.Launch]
// waits for its arguments by itself; call Wait before another library gives the stream work on the view: when the
// view is closed, the program gets its memory back after the work of the streams that have waited for it.
//
// The error wraps core.ErrUnavailable if the memory will never be ready, or if hundreds of operations on the stream
// wait for programs already. If the program ends while the stream waits, the stream goes on, and
// [Stream.Synchronize] returns the error.
func (s *Stream) Wait(v *core.View) error {
	const op = "wait"
	m, _, release, err := v.Acquire()
	if err != nil {
		return about(op, v.Name(), err)
	}
	defer release()
	imported, ok := m.(*imports.Memory) // only the memory of programs has fences
	if !ok {
		return nil
	}
	if err := s.stream.Give(func() error { return s.stream.Await(imported) }); err != nil {
		return about(op, v.Name(), err)
	}
	return nil
}

// Synchronize waits until the stream has done all work that it was given, or until ctx ends, and returns
// the error of ctx then. The error wraps core.ErrUnavailable if a program ended or failed before it had
// done the work that the stream waited for: what the stream did since the last Synchronize used memory that
// was not ready. It also wraps core.ErrUnavailable if the GPU could not do the stream's own work.
func (s *Stream) Synchronize(ctx context.Context) error {
	const op = "synchronize"
	switch err := s.stream.Synchronize(ctx); {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return &core.Error{Op: op, Kind: err, Err: context.Cause(ctx)}
	case err != nil:
		return about(op, "", err)
	}
	return nil
}

// Close destroys the stream. The GPU still does the work that the stream was given. Close is idempotent.
func (s *Stream) Close() error {
	if err := s.stream.Close(); err != nil {
		return driver.Explain("close stream", "", err)
	}
	return nil
}
