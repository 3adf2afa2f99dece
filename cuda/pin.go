package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// Pin gives the memory of a view that lies in host memory to the driver, so that it can be an argument of
// [Launch] on a device, and copies of it run at full speed: its pages stay in place until unpin is
// called, once, after the work that uses them. The view may be closed before that. Pinning costs about
// as much as reading the memory once, so what is pinned should be used often. If a stream of this package
// waits for a program, unpin does not wait for it: the pages are let go when none does any more, and who
// pins them before waits a while for that.
//
// The pages are pinned as a whole: the error for a view that shares some with memory that is pinned
// already wraps core.ErrConfig. A view that is not writable is pinned for reading only, which not every
// device can (core.ErrUnsupported). Memory that is not the host's is an error that wraps core.ErrDevice.
func Pin(device int, v *core.View) (unpin func() error, err error) {
	const op = "pin"
	kept, err := keep(v)
	if err != nil {
		return nil, about(op, v.Name(), err)
	}
	if v.Len() == 0 {
		return sync.OnceValue(kept.Close), nil
	}
	g, err := openPrimary(op, device)
	if err != nil {
		return nil, about(op, v.Name(), errors.Join(err, kept.Close()))
	}
	first, err := pin(g, v)
	if err != nil {
		return nil, about(op, v.Name(), errors.Join(err, g.Close(), kept.Close()))
	}
	return sync.OnceValue(func() error {
		err := primary.Streams.Make(func() error {
			return errors.Join(g.Do(func() error { return driver.HostUnregister(first) }), kept.Close())
		})
		return errors.Join(err, g.Close())
	}), nil
}

// pin registers the pages of a view with the driver, and gives the address of the first.
func pin(g *primary.GPU, v *core.View) (first uintptr, err error) {
	m, _, release, err := v.Acquire()
	if err != nil {
		return 0, err
	}
	defer release()
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
	return first, pinError(register(g, first, size, flags))
}

// unpinWait is how long Pin waits for pages that were unpinned, and are not let go yet.
const unpinWait = 2 * time.Second

func register(g *primary.GPU, first uintptr, size int64, flags driver.RegisterFlags) error {
	try := func() error { return driver.HostRegister(first, size, flags) }
	err := g.Do(try)
	if d, ok := errors.AsType[*driver.Error](err); !ok || d.Code != driver.AlreadyRegistered {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), unpinWait)
	defer cancel()
	_ = primary.Streams.Flush(ctx) // or they are pinned still
	return g.Do(try)
}

// keep makes another view of the same elements, which keeps the memory.
func keep(v *core.View) (*core.View, error) {
	axes := make([]int, v.Rank())
	for i := range axes {
		axes[i] = i
	}
	return v.Transpose(axes...)
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
