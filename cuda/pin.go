package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// Pin gives the memory of a view that lies in host memory to the driver, so that it can be an argument of
// [Launch] on a device, and copies of it run at full speed: its pages stay in place until unpin is
// called, once, after the work that uses them. The view may be closed before that. Pinning costs about
// as much as reading the memory once, so what is pinned should be used often.
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
	undo := []func() error{kept.Close}
	fail := func(err error) (func() error, error) {
		return nil, about(op, v.Name(), errors.Join(err, runAll(undo)))
	}
	if v.Len() == 0 {
		return once(undo), nil
	}
	g, err := openPrimary(op, device)
	if err != nil {
		return fail(err)
	}
	undo = append(undo, g.Close)
	err = v.Use(func(m core.Memory, _ int) error {
		if m.Bytes() == nil || !v.Device().HostReadable() { // what was pinned for the program is not for us
			return &core.Error{
				Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v needs no pinning", v.Device()),
				Remedy: "pass the view itself",
			}
		}
		lo, hi := v.Span()
		page := uintptr(os.Getpagesize())
		first := (m.Addr() + uintptr(lo)) &^ (page - 1)
		size := int64((m.Addr()+uintptr(hi)+page-1)&^(page-1) - first)
		flags := driver.RegisterPortable | driver.RegisterMapped
		if !v.Writable() {
			flags |= driver.RegisterReadOnly
		}
		if err := g.Do(func() error { return driver.HostRegister(first, size, flags) }); err != nil {
			return pinError(err)
		}
		undo = append(undo, func() error {
			return g.Do(func() error { return driver.HostUnregister(first) })
		})
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return once(undo), nil
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

// runAll undoes, the last thing first.
func runAll(undo []func() error) error {
	var errs []error
	for _, f := range slices.Backward(undo) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func once(undo []func() error) func() error {
	return sync.OnceValue(func() error { return runAll(undo) })
}
