package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Pin registers the memory of a view in host memory with the driver (cuMemHostRegister). A kernel on
// that device can then use the view: see [Function.Launch]. The caller calls unpin once, after the work
// that uses the memory; the view may be closed before. Pinning costs about as much as one read of the
// memory, so it pays for memory that is used often.
//
// While a stream of this package waits for a program, unpin returns at once, and the driver unregisters
// the memory when no stream waits any more. A Pin of the same pages waits a short time for that.
//
// Pin registers whole pages. The error wraps core.ErrConfig if the view shares a page with memory that
// is pinned already, core.ErrUnsupported if the view is read-only and the device cannot register such
// memory, and core.ErrDevice if the memory is not the host's.
func Pin(device int, v *core.View) (unpin func() error, err error) {
	const op = "pin"
	m, _, release, err := v.Acquire()
	if err != nil {
		return nil, about(op, v.Name(), err)
	}
	if v.Len() == 0 {
		return func() error { release(); return nil }, nil
	}
	p, err := openPrimary(op, device)
	if err != nil {
		release()
		return nil, about(op, v.Name(), err)
	}
	first, err := pin(p, m, v)
	if err != nil {
		release()
		return nil, about(op, v.Name(), errors.Join(err, p.Close()))
	}
	return sync.OnceValue(func() error {
		err := gpu.Streams.Make(func() error {
			defer release()
			return p.Do(func() error { return driver.HostUnregister(first) })
		})
		return errors.Join(err, p.Close())
	}), nil
}

// pin registers the pages of a view with the driver, and returns the address of the first.
func pin(p *gpu.Primary, m core.Memory, v *core.View) (first uintptr, err error) {
	if m.Bytes() == nil || !v.Device().HostReadable() { // what was pinned for the program is not for us
		return 0, &core.Error{
			Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v needs no pinning", v.Device()),
			Remedy: "pass the view itself",
		}
	}
	lo, hi := v.Span()
	page := uintptr(os.Getpagesize())
	first = (m.Addr() + uintptr(lo)) &^ (page - 1)
	size := int64((m.Addr()+uintptr(hi)+page-1)&^(page-1) - first)
	flags := driver.RegisterPortable | driver.RegisterMapped
	if !v.Writable() {
		flags |= driver.RegisterReadOnly
	}
	return first, pinError(register(p, first, size, flags))
}

// unpinWait is how long Pin waits for pages whose unpin was deferred.
const unpinWait = 2 * time.Second

func register(p *gpu.Primary, first uintptr, size int64, flags driver.RegisterFlags) error {
	try := func() error { return driver.HostRegister(first, size, flags) }
	err := p.Do(try)
	if d, ok := errors.AsType[*driver.Error](err); !ok || d.Code != driver.AlreadyRegistered {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), unpinWait)
	defer cancel()
	_ = gpu.Streams.Flush(ctx) // or they are pinned still
	return p.Do(try)
}

func pinError(err error) error {
	d, ok := errors.AsType[*driver.Error](err)
	switch {
	case ok && d.Code == driver.AlreadyRegistered:
		return &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("it shares pages with memory that is pinned: %w", err),
			Remedy: "pin the whole array once",
		}
	case errors.Is(err, core.ErrUnsupported):
		return &core.Error{
			Kind: core.ErrUnsupported, Err: err, Remedy: "ask for a writable view, or copy the array to the GPU",
		}
	default:
		return err
	}
}
