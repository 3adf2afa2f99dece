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

// MemFree frees memory from MemAlloc or MemAllocManaged when all work on the device is done. It blocks
// all other calls until then.
func MemFree(p uintptr) error { return failed("cuMemFree", cu.MemFree(cu.DevicePtr(p))) }

// MemGetAddressRange returns the allocation that p lies in. Where physical allocations are mapped side
// by side, it returns one of them.
func MemGetAddressRange(p uintptr) (base uintptr, size int64, err error) {
	var b C.CUdeviceptr
	var n C.size_t
	err = result("cuMemGetAddressRange", C.cuMemGetAddressRange(&b, &n, C.CUdeviceptr(p)))
	return uintptr(b), int64(n), err
}

// MemcpyHtoDAsync makes the stream copy from memory outside the Go heap.
func MemcpyHtoDAsync(dst, src uintptr, n int64, s Stream) error {
	return result("cuMemcpyHtoDAsync",
		C.htod(C.CUdeviceptr(dst), C.uintptr_t(src), C.size_t(n), s.c()))
}

// MemcpyDtoHAsync makes the stream copy to memory outside the Go heap.
func MemcpyDtoHAsync(dst, src uintptr, n int64, s Stream) error {
	return result("cuMemcpyDtoHAsync",
		C.dtoh(C.uintptr_t(dst), C.CUdeviceptr(src), C.size_t(n), s.c()))
}

// HostRegister makes host memory outside the Go heap accessible to the devices of the current context.
func HostRegister(p uintptr, n int64, flags RegisterFlags) error {
	return result("cuMemHostRegister",
		C.host_register(C.uintptr_t(p), C.size_t(n), C.uint(flags)))
}

// HostUnregister undoes HostRegister. It may wait for all streams, and blocks all other calls
// meanwhile.
func HostUnregister(p uintptr) error {
	return result("cuMemHostUnregister", C.host_unregister(C.uintptr_t(p)))
}

// HostGetDevicePointer returns the address of registered or pinned memory on the device of the current
// context.
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

// FreeHost frees memory from HostAlloc. It waits for all streams, and blocks all other calls meanwhile.
func FreeHost(p uintptr) error { return result("cuMemFreeHost", C.host_free(C.uintptr_t(p))) }

func (s Stream) c() C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }
