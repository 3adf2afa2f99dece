//go:build cuda

package driver

/*
#include <cuda.h>

// Go's vet and its checks of pointers want addresses that are not Go's as numbers.
static CUresult htod(CUdeviceptr dst, uintptr_t src, size_t n, CUstream s) {
	return cuMemcpyHtoDAsync(dst, (const void *)src, n, s);
}
static CUresult dtoh(uintptr_t dst, CUdeviceptr src, size_t n, CUstream s) {
	return cuMemcpyDtoHAsync((void *)dst, src, n, s);
}
static CUresult host_register(uintptr_t p, size_t n, unsigned int flags) {
	return cuMemHostRegister((void *)p, n, flags);
}
static CUresult host_unregister(uintptr_t p) { return cuMemHostUnregister((void *)p); }
static CUresult host_device_pointer(CUdeviceptr *d, uintptr_t p) {
	return cuMemHostGetDevicePointer(d, (void *)p, 0);
}
static CUresult host_alloc(uintptr_t *p, size_t n, unsigned int flags) {
	return cuMemHostAlloc((void **)p, n, flags);
}
static CUresult host_free(uintptr_t p) { return cuMemFreeHost((void *)p); }
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// MemAlloc allocates device memory in the current context.
func MemAlloc(n int64) (uintptr, error) {
	p, err := cu.MemAlloc(n)
	return uintptr(p), failed("cuMemAlloc", err)
}

// MemFree frees what MemAlloc or MemAllocManaged gave, once all work on the device is done. It keeps all
// calls out until then.
func MemFree(p uintptr) error { return failed("cuMemFree", cu.MemFree(cu.DevicePtr(p))) }

// MemGetAddressRange gives the allocation that p lies in, or the one physical allocation where
// several are mapped side by side.
func MemGetAddressRange(p uintptr) (base uintptr, size int64, err error) {
	var b C.CUdeviceptr
	var n C.size_t
	err = result("cuMemGetAddressRange", C.cuMemGetAddressRange(&b, &n, C.CUdeviceptr(p)))
	return uintptr(b), int64(n), err
}

// MemcpyHtoDAsync lets the stream copy from memory that is not Go's.
func MemcpyHtoDAsync(dst, src uintptr, n int64, s Stream) error {
	return result("cuMemcpyHtoDAsync",
		C.htod(C.CUdeviceptr(dst), C.uintptr_t(src), C.size_t(n), s.c()))
}

// MemcpyDtoHAsync lets the stream copy to memory that is not Go's.
func MemcpyDtoHAsync(dst, src uintptr, n int64, s Stream) error {
	return result("cuMemcpyDtoHAsync",
		C.dtoh(C.uintptr_t(dst), C.CUdeviceptr(src), C.size_t(n), s.c()))
}

// HostRegister gives host memory that is not Go's to the current context's devices.
func HostRegister(p uintptr, n int64, flags RegisterFlags) error {
	return result("cuMemHostRegister",
		C.host_register(C.uintptr_t(p), C.size_t(n), C.uint(flags)))
}

// HostUnregister takes registered memory back. It may wait for all streams, and keep all calls out meanwhile.
func HostUnregister(p uintptr) error {
	return result("cuMemHostUnregister", C.host_unregister(C.uintptr_t(p)))
}

// HostGetDevicePointer gives the address of registered or pinned memory on the current context's
// device.
func HostGetDevicePointer(p uintptr) (uintptr, error) {
	var d C.CUdeviceptr
	err := result("cuMemHostGetDevicePointer", C.host_device_pointer(&d, C.uintptr_t(p)))
	return uintptr(d), err
}

// HostAlloc allocates pinned host memory that all contexts reach.
func HostAlloc(n int64) (uintptr, error) {
	var p C.uintptr_t
	err := result("cuMemHostAlloc",
		C.host_alloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE|C.CU_MEMHOSTALLOC_DEVICEMAP))
	return uintptr(p), err
}

// FreeHost frees what HostAlloc gave. It waits for all streams, and keeps all calls out meanwhile.
func FreeHost(p uintptr) error { return result("cuMemFreeHost", C.host_free(C.uintptr_t(p))) }

func (s Stream) c() C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }
