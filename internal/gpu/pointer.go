package gpu

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Kind is how memory was allocated.
type Kind uint8

// The kinds of memory that the driver knows.
const (
	KindDevice  Kind = iota + 1 // of a GPU, by cuMemAlloc: one allocation
	KindVMM                     // of a GPU, physical allocations mapped side by side
	KindPool                    // of a GPU, from a memory pool (cuMemAllocAsync)
	KindManaged                 // migrates between the CPU and GPUs
	KindPinned                  // of the host, page-locked: the driver allocated or registered it
)

// String returns "device", "vmm", "pool", "managed" or "pinned".
func (k Kind) String() string {
	switch k {
	case KindDevice:
		return "device"
	case KindVMM:
		return "vmm"
	case KindPool:
		return "pool"
	case KindManaged:
		return "managed"
	case KindPinned:
		return "pinned"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// Pointer is what the driver reported about an address when [Inspect] asked. A program can free the
// memory later, and the driver can then reuse the address: the BufferID identifies the allocation.
type Pointer struct {
	Addr   uintptr
	Kind   Kind
	Device core.Device   // of this process, with the kind of the memory
	GPU    contract.UUID // of the device; zero for pinned memory that belongs to none

	// Base and Size describe the allocation, or all Chunks together. For pinned memory whose range the
	// driver does not report, they describe the extent that Inspect was given.
	Base uintptr
	Size int64

	BufferID uint64     // unique in this process for all time; of the first chunk
	Chunks   []Chunk    // the physical allocations that the extent covers, for KindVMM
	HostAddr uintptr    // the CPU's address of Addr; 0 if it has none
	Route    core.Route // how another process reaches it without a copy; RouteNone if it cannot

	context driver.Context // of the memory; null for pools and VMM
	pool    driver.Pool
}

// Context returns the CUcontext that owns the memory. It is 0 for pools and virtual memory, which belong
// to a device.
func (p *Pointer) Context() uintptr { return uintptr(p.context) }

// Pool returns the CUmemoryPool that the memory comes from, or 0.
func (p *Pointer) Pool() uintptr { return uintptr(p.pool) }

// Chunk is one physical allocation.
type Chunk struct {
	Base     uintptr
	Size     int64
	BufferID uint64
}

// Inspect asks the driver about n bytes of memory at addr. It initialises CUDA: see [Available]. The error
// matches [core.ErrPointer] if the driver does not know the memory (ordinary host memory, or memory that
// was freed), or if the extent crosses the end of its allocation.
func Inspect(addr uintptr, n int64) (Pointer, error) {
	gpus, err := Devices()
	if err != nil {
		return Pointer{}, err
	}
	if n < 0 || addr+uintptr(n) < addr {
		return Pointer{}, wrongPointer(addr, "%d bytes are no extent", n)
	}
	a, err := driver.PointerAttributes(addr)
	if err != nil {
		return Pointer{}, driver.Explain("inspect", fmt.Sprintf("%#x", addr), err)
	}
	p := Pointer{
		Addr: addr, BufferID: a.BufferID, HostAddr: a.HostPointer,
		context: a.Context, pool: a.Pool,
		Device: core.Device{Index: int(a.Device)},
	}
	if a.Type == driver.NoMemory {
		return Pointer{}, wrongPointer(addr, "the CUDA driver knows no memory there")
	}
	switch {
	case p.Device.Index >= 0 && p.Device.Index < len(gpus):
		p.GPU = gpus[p.Device.Index].UUID
	case a.Type == driver.HostMemory:
		p.Device.Index = 0 // of a pool of the host's
	default:
		err := wrongPointer(addr, "it is on device %d of %d", a.Device, len(gpus))
		err.Kind = core.ErrDevice
		return Pointer{}, err
	}
	err = p.within(func() error { return p.measure(a, n) })
	if e, ok := errors.AsType[*driver.Error](err); ok && (e.Code == driver.NotFound || e.Code == driver.InvalidValue) {
		gone := wrongPointer(addr, "nothing is mapped there")
		gone.Err = fmt.Errorf("%w: %w", gone.Err, err)
		return Pointer{}, gone
	}
	if err != nil {
		return Pointer{}, driver.Explain("inspect", fmt.Sprintf("%#x", addr), err)
	}
	if p.Route == contract.RouteCUDAIPC && !gpus[p.Device.Index].IPC {
		p.Route = ""
	}
	return p, nil
}

// Stands reports whether the address still belongs to the same allocation. It returns false for several
// physical allocations, since it can check only the first.
func (p *Pointer) Stands() bool {
	if len(p.Chunks) > 1 {
		return false
	}
	id, err := driver.PointerBufferID(p.Addr)
	return err == nil && id == p.BufferID
}

// within runs f in the context that the memory belongs to; for memory without one, in the device's
// primary context if somebody uses that, else in none: it would be a context of 500 MB.
func (p *Pointer) within(f func() error) error {
	if p.context != 0 {
		return driver.With(p.context, f)
	}
	d := driver.Device(p.Device.Index)
	active, err := driver.PrimaryCtxActive(d)
	if err != nil {
		return err
	}
	if !active {
		err = f()
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Code == driver.InvalidContext {
			return &core.Error{
				Op: "inspect", Object: fmt.Sprintf("%#x", p.Addr), Kind: core.ErrDevice,
				Err: fmt.Errorf("memory of pools and of the virtual memory calls belongs to no context, "+
					"and the program does not use the primary context of %v", core.Device{Kind: core.CUDA, Index: p.Device.Index}),
				Remedy: "work in the primary context (cuDevicePrimaryCtxRetain), or allocate with cuMemAlloc",
			}
		}
		return err
	}
	ctx, err := driver.PrimaryCtxRetain(d)
	if err != nil {
		return err
	}
	err = driver.With(ctx, f)
	return cmp.Or(err, driver.PrimaryCtxRelease(d))
}

// measure finds kind, extent and route.
func (p *Pointer) measure(a driver.Attributes, n int64) error {
	switch {
	case a.Managed:
		p.Kind, p.Device.Kind = KindManaged, core.CUDAManaged
		return p.measureOne(n)
	case a.Type == driver.HostMemory:
		p.Kind, p.Device.Kind = KindPinned, core.CUDAPinned
		if err := p.measureOne(n); err != nil {
			return p.measureEnds(a, n, err)
		}
		return nil
	}
	p.Device.Kind = core.CUDA
	exportable := a.HandleTypes&driver.HandleFileDescriptor != 0
	switch {
	case a.Pool != 0:
		p.Kind = KindPool
		if exportable {
			p.Route = contract.RouteCUDAPool
		}
		return p.measureOne(n)
	case a.IPC:
		p.Kind, p.Route = KindDevice, contract.RouteCUDAIPC
		return p.measureOne(n)
	case exportable || isVMM(p.Addr):
		p.Kind = KindVMM
		if exportable {
			p.Route = contract.RouteCUDAVMM
		}
		return p.measureChunks(n)
	default:
		p.Kind = KindDevice
		return p.measureOne(n)
	}
}

// isVMM asks for the physical allocation, which only the virtual memory calls can name.
func isVMM(addr uintptr) bool {
	h, err := driver.MemRetainAllocationHandle(addr)
	return err == nil && driver.MemRelease(h) == nil
}

func (p *Pointer) measureOne(n int64) error {
	base, size, err := driver.MemGetAddressRange(p.Addr)
	if err != nil {
		return err
	}
	p.Base, p.Size = base, size
	return p.holds(n)
}

// holds proves that the extent lies inside the allocation.
func (p *Pointer) holds(n int64) error {
	if p.Addr < p.Base || n > p.Size || p.Addr-p.Base > uintptr(p.Size-n) {
		return wrongPointer(p.Addr, "its %d bytes reach out of the %s memory of %d bytes at %#x",
			n, p.Kind, p.Size, p.Base)
	}
	return nil
}

// measureEnds settles for the two ends of the extent, where the driver gives no range: they must
// belong to the same memory.
func (p *Pointer) measureEnds(a driver.Attributes, n int64, cause error) error {
	if p.Base != 0 || n == 0 {
		return cause
	}
	last, err := driver.PointerAttributes(p.Addr + uintptr(n-1))
	if err != nil {
		return err
	}
	if last.Type != a.Type || last.BufferID != a.BufferID || last.Pool != a.Pool {
		return wrongPointer(p.Addr, "its %d bytes reach out of the %s memory that it lies in", n, p.Kind)
	}
	p.Base, p.Size = p.Addr, n
	return nil
}

// measureChunks walks the physical allocations from the first byte of the extent to the last. What the
// driver's range attributes say is the whole reservation, mapped or not.
func (p *Pointer) measureChunks(n int64) error {
	end := p.Addr + uintptr(n)
	for next := p.Addr; len(p.Chunks) == 0 || next < end; {
		base, size, err := driver.MemGetAddressRange(next)
		chunk := Chunk{Base: base, Size: size, BufferID: p.BufferID}
		switch {
		case len(p.Chunks) == 0:
			p.Base = base
		case err != nil || base != next || size <= 0: // here the memory ends
			return p.holds(n)
		default:
			chunk.BufferID, err = p.sameAs(base)
		}
		if err != nil {
			return err
		}
		p.Chunks = append(p.Chunks, chunk)
		p.Size += size
		next = base + uintptr(size)
	}
	return p.holds(n)
}

// sameAs gives the identity of a further chunk. A chunk that cannot be exported bars the way of all.
func (p *Pointer) sameAs(base uintptr) (id uint64, err error) {
	a, err := driver.PointerAttributes(base)
	if err != nil {
		return 0, err
	}
	if int(a.Device) != p.Device.Index {
		return 0, wrongPointer(p.Addr, "its memory lies on devices %d and %d", p.Device.Index, a.Device)
	}
	if a.HandleTypes&driver.HandleFileDescriptor == 0 {
		p.Route = ""
	}
	return a.BufferID, nil
}

// wrongPointer is the error about an address that Inspect refuses.
func wrongPointer(addr uintptr, format string, args ...any) *core.Error {
	return &core.Error{
		Op: "inspect", Object: fmt.Sprintf("%#x", addr), Kind: core.ErrPointer, Err: fmt.Errorf(format, args...),
	}
}
