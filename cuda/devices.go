package cuda

import (
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// DeviceInfo is a GPU, or a part of one (MIG), and what it can do. What it can is what the driver says
// of this device here, not what its model could.
type DeviceInfo struct {
	Index             int // among the devices that this process sees
	UUID              contract.UUID
	Name              string // of the model
	Memory            int64  // bytes
	ComputeCapability [2]int // major, minor

	IPC          bool // memory of cuMemAlloc and events cross by IPC handles; not under MIG, WSL2 or on Jetson
	VMM          bool // physical allocations cross as file descriptors
	Pools        bool // memory pools cross as file descriptors
	StreamWords  bool // streams write and wait for words in memory
	Registration bool // host memory can be registered, at the address that it has

	// ReadOnlyRegistration says that host memory can be registered that is mapped read-only.
	ReadOnlyRegistration bool
}

// Devices lists the GPUs that this process sees, by index. It makes CUDA [Available].
func Devices() ([]DeviceInfo, error) { return devices() }

// They stay the same while the process lives.
var devices = sync.OnceValues(func() ([]DeviceInfo, error) { //nolint:gochecknoglobals // see above
	if err := Available(); err != nil {
		return nil, err
	}
	n, err := driver.DeviceCount()
	if err != nil {
		return nil, failed("list devices", "", err)
	}
	infos := make([]DeviceInfo, n)
	for i := range infos {
		if infos[i], err = describe(i); err != nil {
			return nil, failed("describe", core.Device{Kind: core.CUDA, Index: i}.String(), err)
		}
	}
	return infos, nil
})

func describe(index int) (DeviceInfo, error) {
	d := driver.Device(index)
	info := DeviceInfo{Index: index}
	var err error
	if info.Name, err = driver.DeviceName(d); err != nil {
		return info, err
	}
	uuid, err := driver.DeviceUUID(d)
	if err != nil {
		return info, err
	}
	info.UUID = uuid
	if info.Memory, err = driver.DeviceTotalMem(d); err != nil {
		return info, err
	}
	for i, a := range []driver.DeviceAttribute{driver.AttrComputeMajor, driver.AttrComputeMinor} {
		if info.ComputeCapability[i], err = driver.DeviceGetAttribute(d, a); err != nil {
			return info, err
		}
	}
	// An attribute that a driver does not know is an ability that it does not have.
	has := func(a driver.DeviceAttribute) bool {
		v, err := driver.DeviceGetAttribute(d, a)
		return err == nil && v != 0
	}
	poolHandles, err := driver.DeviceGetAttribute(d, driver.AttrPoolHandleTypes)
	info.Pools = err == nil && poolHandles&driver.HandleFileDescriptor != 0 && has(driver.AttrPools)
	info.IPC = has(driver.AttrIPC)
	info.VMM = has(driver.AttrVMM) && has(driver.AttrFileDescriptors)
	info.StreamWords = has(driver.AttrStreamMemoryWords)
	info.Registration = has(driver.AttrHostRegister) && has(driver.AttrHostPointer)
	info.ReadOnlyRegistration = has(driver.AttrReadOnlyRegister)
	return info, nil
}

// deviceOf finds a device by what identifies it.
func deviceOf(uuid contract.UUID) (DeviceInfo, error) {
	all, err := Devices()
	if err != nil {
		return DeviceInfo{}, err
	}
	for _, d := range all {
		if d.UUID == uuid {
			return d, nil
		}
	}
	return DeviceInfo{}, &core.Error{
		Op: "find", Object: uuid.String(), Kind: core.ErrDevice,
		Err:    fmt.Errorf("this process sees %d devices, not that one", len(all)),
		Remedy: "check CUDA_VISIBLE_DEVICES of both processes",
	}
}
