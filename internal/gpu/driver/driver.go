// Package driver calls the CUDA driver. It has one thin function for each call that this module needs,
// under the driver's name without "cu". NVIDIA's reference of the driver API documents the arguments;
// the comments here document only differences.
//
// Without the build tag "cuda" every function returns an error that matches [core.ErrUnsupported], and
// the package needs no cgo. With the tag, gorgonia.org/cu makes the calls that it makes well, and cgo
// makes the rest: pointer attributes, IPC, virtual memory, pools, registered memory. A binary with the
// tag links a library of stubs (folder stub), so it starts without a driver. Nothing loads or
// initialises CUDA before [Init].
//
// Most calls act on the calling thread's current context: make them inside [With]. All functions are
// safe for concurrent use.
package driver

import "runtime"

type (
	// Device is an index among the devices that this process sees.
	Device int32
	// Context is a CUcontext. Zero is the driver's null, as for the handles that follow.
	Context uintptr
	// Stream is a CUstream. Zero is the default stream of the current context.
	Stream uintptr
	// Event is a CUevent.
	Event uintptr
	// Pool is a CUmemoryPool.
	Pool uintptr
	// Module is a CUmodule.
	Module uintptr
	// Function is a CUfunction.
	Function uintptr
	// MemHandle is a CUmemGenericAllocationHandle: a physical allocation.
	MemHandle uint64

	// IPCMem names an allocation in other processes.
	IPCMem [64]byte
	// PoolPtr names an allocation in other processes that imported its pool.
	PoolPtr [64]byte
)

// DeviceAttribute is a property of a device.
type DeviceAttribute int32

// The attributes that this module asks for, by the driver's numbers.
const (
	AttrMultiprocessors  DeviceAttribute = 16
	AttrComputeMajor     DeviceAttribute = 75
	AttrComputeMinor     DeviceAttribute = 76
	AttrHostPointer      DeviceAttribute = 91 // registered memory has the same address on the device
	AttrHostRegister     DeviceAttribute = 99
	AttrVMM              DeviceAttribute = 102
	AttrFileDescriptors  DeviceAttribute = 103 // of physical allocations
	AttrReadOnlyRegister DeviceAttribute = 113
	AttrPools            DeviceAttribute = 115
	AttrPoolHandleTypes  DeviceAttribute = 119 // a mask with HandleFileDescriptor
	AttrStreamMemOps     DeviceAttribute = 122 // 64-bit words, which imply those of 32 bits
	AttrIPC              DeviceAttribute = 125
)

// HandleFileDescriptor is the bit for a file descriptor in a mask of handle types.
const HandleFileDescriptor = 1

// MemoryType is the place of memory.
type MemoryType uint32

// The memory types. The driver knows no memory at an address of type NoMemory.
const (
	NoMemory MemoryType = iota
	HostMemory
	DeviceMemory
)

// Attributes is what the driver knows of an address.
type Attributes struct {
	Type          MemoryType
	Managed       bool
	Mapped        bool // physical memory is behind the address
	IPC           bool // a legacy IPC handle can be made
	Device        Device
	HandleTypes   uint32  // ways to export the allocation: a mask
	Context       Context // null for memory of pools and of the virtual memory calls
	Pool          Pool    // null unless it comes from a pool
	DevicePointer uintptr // 0 if there is no current context, or it cannot reach it
	HostPointer   uintptr // 0 if the CPU cannot reach it
	BufferID      uint64  // never used twice in a process
}

// EventFlags choose what an event can do.
type EventFlags uint32

// EventDisableTiming makes an event that is cheaper to record, and has no time.
const EventDisableTiming EventFlags = 2

// RegisterFlags choose how host memory is registered.
type RegisterFlags uint32

// Flags of registered memory.
const (
	RegisterPortable RegisterFlags = 1 // for all contexts
	RegisterMapped   RegisterFlags = 2 // it has a device pointer
	RegisterReadOnly RegisterFlags = 8 // the mapping may not be written; devices only read it
)

// Dim is the extent of a grid in blocks, or of a block in threads.
type Dim struct{ X, Y, Z int }

// With runs f on one thread with the context current, and restores the thread's context. In f, calls that the
// capture of a graph forbids do not break captures of other threads, unless they concern a whole context.
func With(ctx Context, f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer relaxed()()
	if err := CtxPush(ctx); err != nil {
		return err
	}
	defer func() {
		if e := CtxPop(); err == nil {
			err = e
		}
	}()
	return f()
}
