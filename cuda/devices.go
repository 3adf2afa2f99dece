package cuda

import (
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
)

// Available loads the driver and initialises CUDA in this process, once. It returns nil, or an error that
// matches [core.ErrUnsupported] if this process can have no CUDA, or [core.ErrVersion] if the driver is
// older than CUDA 12.0. A process that has initialised CUDA must not use it after a fork.
func Available() error { return gpu.Available() }

// DeviceInfo describes a GPU, or a MIG instance of one. The abilities are those that the driver reports for
// this device in this process, which can be fewer than those of the model.
type DeviceInfo struct {
	Index             int           // among the devices that this process sees
	UUID              contract.UUID // the same in all processes, unlike Index
	Name              string        // of the model
	Memory            int64         // bytes
	ComputeCapability [2]int        // major, minor

	IPC          bool // cuMemAlloc memory and events have IPC handles; not under MIG or WSL2, nor on Jetson
	VMM          bool // physical allocations of virtual memory management have file descriptors
	Pools        bool // memory pools have file descriptors
	StreamMemOps bool // streams can write a value to memory, and wait for one
	Registration bool // the driver can register host memory, at its own address

	// ReadOnlyRegistration reports whether the driver can register host memory that is mapped read-only.
	ReadOnlyRegistration bool
}

// Devices lists the GPUs that this process sees, by index. It initialises CUDA, and its errors are those of
// [Available] if that fails.
func Devices() ([]DeviceInfo, error) {
	found, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	infos := make([]DeviceInfo, len(found))
	for i, d := range found {
		infos[i] = DeviceInfo(d)
	}
	return infos, nil
}
