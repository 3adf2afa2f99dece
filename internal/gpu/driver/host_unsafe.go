//go:build cuda

package driver

// #include <cuda.h>
import "C"

import "unsafe"

// MemHandleDevice returns the device that a physical allocation lies on.
func MemHandleDevice(h MemHandle) (Device, error) {
	var p C.CUmemAllocationProp
	err := result("cuMemGetAllocationPropertiesFromHandle",
		C.cuMemGetAllocationPropertiesFromHandle(&p, C.CUmemGenericAllocationHandle(h)))
	return Device(p.location.id), err
}

// FuncParams returns the size of each parameter of a kernel, in bytes. The result is not nil, even for
// a kernel without parameters. Drivers before CUDA 12.4 lack it: [core.ErrUnsupported].
func FuncParams(f Function) ([]int, error) {
	sizes := []int{}
	for {
		var offset, size C.size_t
		r := C.cuFuncGetParamInfo(*(*C.CUfunction)(unsafe.Pointer(&f)), C.size_t(len(sizes)), &offset, &size)
		if Code(r) == InvalidValue { // there is no such parameter
			return sizes, nil
		}
		if err := result("cuFuncGetParamInfo", r); err != nil {
			return nil, err
		}
		sizes = append(sizes, int(size))
	}
}
