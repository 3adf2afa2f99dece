package gpu

import (
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Device is a GPU, or a MIG instance of one, with the abilities that the driver reports for it here.
// Package cuda documents the fields, in cuda.DeviceInfo.
type Device struct {
	Index                int
	UUID                 contract.UUID
	Name                 string
	Memory               int64
	ComputeCapability    [2]int
	IPC                  bool
	VMM                  bool
	Pools                bool
	StreamMemOps         bool
	Registration         bool
	ReadOnlyRegistration bool
}

// Devices lists the GPUs that this process sees, by index. It initialises CUDA: see [Available].
func Devices() ([]Device, error) { return devices() }

// They stay the same while the process lives.
var devices = sync.OnceValues(func() ([]Device, error) { //nolint:gochecknoglobals // see above
	if err := Available(); err != nil {
		return nil, err
	}
	n, err := driver.DeviceCount()
	if err != nil {
		return nil, driver.Explain("list devices", "", err)
	}
	infos := make([]Device, n)
	for i := range infos {
		if infos[i], err = describe(i); err != nil {
			return nil, driver.Explain("describe", core.Device{Kind: core.CUDA, Index: i}.String(), err)
		}
	}
	return infos, nil
})

func describe(index int) (Device, error) {
	d := driver.Device(index)
	info := Device{Index: index}
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
	info.StreamMemOps = has(driver.AttrStreamMemOps)
	info.Registration = has(driver.AttrHostRegister) && has(driver.AttrHostPointer)
	info.ReadOnlyRegistration = has(driver.AttrReadOnlyRegister)
	return info, nil
}

// ByUUID finds a device by its identity. The error wraps [core.ErrDevice] if this process does not see it.
func ByUUID(uuid contract.UUID) (Device, error) {
	all, err := Devices()
	if err != nil {
		return Device{}, err
	}
	for _, d := range all {
		if d.UUID == uuid {
			return d, nil
		}
	}
	return Device{}, &core.Error{
		Op: "find", Object: uuid.String(), Kind: core.ErrDevice,
		Err:    fmt.Errorf("this process sees %d devices, not that one", len(all)),
		Remedy: "check CUDA_VISIBLE_DEVICES of both processes",
	}
}
