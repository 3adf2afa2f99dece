//go:build cuda

package driver

// #include <cuda.h>
import "C"

import "unsafe"

// MemHandleDevice gives the device that a physical allocation lies on.
func MemHandleDevice(h MemHandle) (Device, error) {
	var p C.CUmemAllocationProp
	err := result("cuMemGetAllocationPropertiesFromHandle",
		C.cuMemGetAllocationPropertiesFromHandle(&p, C.CUmemGenericAllocationHandle(h)))
	return Device(p.location.id), err
}

// FuncParams gives the bytes of each parameter of a kernel: not nil, if there are none. Drivers before CUDA 12.4 cannot tell:
// [core.ErrUnsupported].
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
