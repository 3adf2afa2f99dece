package gpu

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Mapping is physical memory of one GPU that is mapped in this process, and that other processes can map by its descriptor.
// Every context of the device reaches it.
type Mapping struct {
	Addr uintptr
	Size int64 // bytes, a multiple of what the driver asks for

	primary *Primary
	undo    []func() error
}

// Create makes memory of zeros with room for size bytes, and a descriptor of it, which the caller closes. The error wraps
// [core.ErrUnsupported] if the device has no such memory, and [core.ErrUnavailable] if there is no room.
func (p *Primary) Create(size int64) (m *Mapping, f *os.File, err error) {
	all, err := Devices()
	if err != nil {
		return nil, nil, err
	}
	if d := all[p.Device]; !d.VMM {
		return nil, nil, &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("%s has no memory that other processes can map by a descriptor", d.Name),
			Remedy: "pass an array in host memory",
		}
	}
	m = &Mapping{primary: p}
	err = p.Do(func() error {
		n, err := driver.MemGranularity(p.Device)
		if err != nil {
			return err
		}
		m.Size = max(1, (size+n-1)/n) * n
		handle, err := driver.MemCreate(p.Device, m.Size)
		if err != nil {
			return err
		}
		defer driver.MemRelease(handle) //nolint:errcheck // the mapping and the descriptor do not need it
		fd, err := driver.MemExport(handle)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), "cuda-array")
		if err := m.place(handle, true); err != nil {
			return err
		}
		return m.clear()
	})
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, f, nil
}

// Map maps all size bytes of the memory of a descriptor from [Primary.Create], which stays the caller's.
func (p *Primary) Map(f *os.File, size int64, writable bool) (*Mapping, error) {
	m := &Mapping{primary: p, Size: size}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = p.Do(func() error {
		var handle driver.MemHandle
		var failed error
		if err := raw.Control(func(fd uintptr) { handle, failed = driver.MemImport(int(fd)) }); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		defer driver.MemRelease(handle) //nolint:errcheck // the mapping does not need it
		where, err := driver.MemHandleDevice(handle)
		if err != nil {
			return err
		}
		if where != p.Device {
			return &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("memory of device %d was said to be on device %d", where, p.Device)}
		}
		return m.place(handle, writable)
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// place maps a whole physical allocation. The context is current.
func (m *Mapping) place(h driver.MemHandle, writable bool) (err error) {
	if m.Addr, err = driver.MemAddressReserve(m.Size); err != nil {
		return err
	}
	m.undo = append(m.undo, func() error { return driver.MemAddressFree(m.Addr, m.Size) })
	if err := driver.MemMap(m.Addr, m.Size, h); err != nil {
		return err
	}
	m.undo = append(m.undo, func() error { return driver.MemUnmap(m.Addr, m.Size) })
	return driver.MemSetAccess(m.Addr, m.Size, m.primary.Device, writable)
}

// clear writes zeros, and waits for that. The context is current.
func (m *Mapping) clear() error {
	s, err := driver.StreamCreate()
	if err != nil {
		return err
	}
	return errors.Join(driver.MemsetD8Async(m.Addr, 0, m.Size, s), driver.StreamSynchronize(s), driver.StreamDestroy(s))
}

// Close unmaps the memory, which exists for as long as a process has it mapped, or a descriptor. The call may wait for all
// streams: see [Primary.End]. Nobody may use the memory any more. Close is idempotent.
func (m *Mapping) Close() error {
	undo := m.undo
	m.undo = nil
	if len(undo) == 0 {
		return nil
	}
	return m.primary.Do(func() error {
		var errs []error
		for _, f := range slices.Backward(undo) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	})
}
