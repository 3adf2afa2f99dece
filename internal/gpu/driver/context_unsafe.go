//go:build cuda

package driver

/*
#include <cuda.h>

// Younger than some headers of CUDA 12: see stub/stub.h.
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent);
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// DeviceCount returns the number of devices.
func DeviceCount() (int, error) {
	n, err := cu.NumDevices()
	return n, failed("cuDeviceGetCount", err)
}

// DeviceName returns the name of a device's model.
func DeviceName(d Device) (string, error) {
	name, err := cu.Device(d).Name()
	return name, failed("cuDeviceGetName", err)
}

// DeviceUUID returns the identity of a device: under MIG, that of the instance.
func DeviceUUID(d Device) ([16]byte, error) {
	var uuid [16]byte
	err := result("cuDeviceGetUuid", C.cuDeviceGetUuid_v2((*C.CUuuid)(unsafe.Pointer(&uuid)), C.CUdevice(d)))
	return uuid, err
}

// DeviceTotalMem returns the bytes of a device's memory.
func DeviceTotalMem(d Device) (int64, error) {
	n, err := cu.Device(d).TotalMem()
	return n, failed("cuDeviceTotalMem", err)
}

// DeviceGetAttribute returns a property of a device.
func DeviceGetAttribute(d Device, a DeviceAttribute) (int, error) {
	value, err := cu.Device(d).Attribute(cu.DeviceAttribute(a))
	return value, failed("cuDeviceGetAttribute", err)
}

// PrimaryCtxRetain returns the device's primary context, and creates it if no code has. Each call needs
// a PrimaryCtxRelease.
func PrimaryCtxRetain(d Device) (Context, error) {
	ctx, err := cu.Device(d).RetainPrimaryCtx()
	return *(*Context)(unsafe.Pointer(&ctx)), failed("cuDevicePrimaryCtxRetain", err)
}

// PrimaryCtxRelease undoes one PrimaryCtxRetain. The last one ends the context.
func PrimaryCtxRelease(d Device) error {
	return failed("cuDevicePrimaryCtxRelease", cu.Device(d).ReleasePrimaryCtx())
}

// PrimaryCtxActive reports whether any code retains the device's primary context.
func PrimaryCtxActive(d Device) (bool, error) {
	_, active, err := cu.Device(d).PrimaryCtxState()
	return active != 0, failed("cuDevicePrimaryCtxGetState", err)
}

func (c Context) cu() cu.CUContext { return *(*cu.CUContext)(unsafe.Pointer(&c)) }
func (s Stream) cu() cu.Stream     { return *(*cu.Stream)(unsafe.Pointer(&s)) }
func (e Event) cu() cu.Event       { return *(*cu.Event)(unsafe.Pointer(&e)) }

// CtxPush makes a context current for the calling thread.
func CtxPush(ctx Context) error { return failed("cuCtxPushCurrent", cu.PushCurrentCtx(ctx.cu())) }

// CtxPop restores the context that was current before CtxPush.
func CtxPop() error {
	_, err := cu.PopCurrentCtx()
	return failed("cuCtxPopCurrent", err)
}

// CtxCurrent returns the context that is current for the calling thread, or 0.
func CtxCurrent() (Context, error) {
	ctx, err := cu.CurrentContext()
	return *(*Context)(unsafe.Pointer(&ctx)), failed("cuCtxGetCurrent", err)
}

// CtxSynchronize waits for all work of the current context.
func CtxSynchronize() error { return failed("cuCtxSynchronize", cu.Synchronize()) }

// CtxRecordEvent records an event that happens when all work that the context was given until now is
// done, on any stream. Drivers before CUDA 12.5 lack it: [core.ErrUnsupported]. While a stream of the
// context is being captured, it fails and breaks the capture. The context need not be current.
func CtxRecordEvent(ctx Context, e Event) error {
	return result("cuCtxRecordEvent", C.cuCtxRecordEvent(
		*(*C.CUcontext)(unsafe.Pointer(&ctx)), *(*C.CUevent)(unsafe.Pointer(&e)),
	))
}
