package gpu

import (
	"errors"
	"fmt"
	"os"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Mapping is memory of one GPU that is mapped here: physical memory side by side in a range of addresses, which every context of
// the device reaches, or an allocation of another process ([OpenIPC]), which is that of one context.
// The functions that make and change one are called with such a context current, by one goroutine at a time.
type Mapping struct {
	Addr uintptr
	Size int64 // bytes of the range

	device driver.Device
	sizes  []int64 // of what is mapped, from Addr on
	ipc    bool    // it is an allocation of another process
}

// Reserve reserves a range of addresses, in which nothing is mapped yet. The caller calls Unmap once.
func Reserve(d driver.Device, size int64) (*Mapping, error) {
	addr, err := driver.MemAddressReserve(size)
	if err != nil {
		return nil, err
	}
	return &Mapping{Addr: addr, Size: size, device: d}, nil
}

// Allocate makes memory with room for size bytes, in which the device may write, and a descriptor by which other processes can
// map it, which the caller closes. The memory exists for as long as it is mapped somewhere, or has a descriptor.
func Allocate(d driver.Device, size int64) (m *Mapping, f *os.File, err error) {
	unit, err := driver.MemGranularity(d)
	if err != nil {
		return nil, nil, err
	}
	size = max(1, (size+unit-1)/unit) * unit
	handle, err := driver.MemCreate(d, size)
	if err != nil {
		return nil, nil, err
	}
	defer driver.MemRelease(handle) //nolint:errcheck // the mapping and the descriptor do not need it
	fd, err := driver.MemExport(handle)
	if err != nil {
		return nil, nil, err
	}
	f = os.NewFile(uintptr(fd), "cuda-memory")
	if m, err = Reserve(d, size); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if err = m.add(handle, size); err == nil {
		err = m.Allow(true)
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Unmap(), f.Close())
	}
	return m, f, nil
}

// Import maps the memory of a descriptor, all size bytes of it, behind what is mapped. The file stays the caller's. That it is as large
// as was said is checked by the driver, which maps nothing that is not there. The error wraps core.ErrProtocol if the memory is
// another device's.
func (m *Mapping) Import(f *os.File, size int64) error {
	var handle driver.MemHandle
	err := WithFD(f, func(fd int) (err error) { handle, err = driver.MemImport(fd); return err })
	if err != nil {
		return err
	}
	defer driver.MemRelease(handle) //nolint:errcheck // the mapping does not need it
	switch where, err := driver.MemHandleDevice(handle); {
	case err != nil:
		return err
	case where != m.device:
		return &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("memory of device %d, not %d", where, m.device)}
	}
	return m.add(handle, size)
}

// OpenIPC opens an allocation of another process, whose first size bytes are wanted. The driver keeps no kernel from writing there. The error is
// the driver's, or wraps core.ErrPointer if the allocation is smaller.
func OpenIPC(mem driver.IPCMem, size int64) (*Mapping, error) {
	addr, err := driver.IPCOpenMemHandle(mem)
	if err != nil {
		return nil, err
	}
	if err := CheckRange(addr, size); err != nil {
		return nil, errors.Join(err, driver.IPCCloseMemHandle(addr))
	}
	return &Mapping{Addr: addr, Size: size, ipc: true}, nil
}

// CheckRange proves that an allocation has size bytes from an address on. A context is current. The error is the driver's, or wraps
// core.ErrPointer.
func CheckRange(addr uintptr, size int64) error {
	base, all, err := driver.MemGetAddressRange(addr)
	if err != nil {
		return err
	}
	if before := int64(addr - base); before < 0 || before > all || size > all-before {
		return &core.Error{Kind: core.ErrPointer, Err: fmt.Errorf("it was said to have %d bytes, and has %d", size, all-before)}
	}
	return nil
}

func (m *Mapping) add(handle driver.MemHandle, size int64) error {
	at := m.Addr
	for _, n := range m.sizes {
		at += uintptr(n)
	}
	if err := driver.MemMap(at, size, handle); err != nil {
		return err
	}
	m.sizes = append(m.sizes, size)
	return nil
}

// Allow lets the device read the memory, and write it if writable is true.
func (m *Mapping) Allow(writable bool) error {
	return driver.MemSetAccess(m.Addr, m.Size, m.device, writable)
}

// Unmap unmaps the memory, and gives the range back. It may wait for all streams: see [Primary.End].
func (m *Mapping) Unmap() error {
	if m.ipc {
		return driver.IPCCloseMemHandle(m.Addr)
	}
	var errs []error
	at := m.Addr
	for _, n := range m.sizes {
		errs = append(errs, driver.MemUnmap(at, n))
		at += uintptr(n)
	}
	return errors.Join(append(errs, driver.MemAddressFree(m.Addr, m.Size))...)
}

// WithFD calls f with the file's descriptor, which cannot be closed meanwhile.
func WithFD(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
