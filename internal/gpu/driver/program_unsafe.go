//go:build cuda

package driver

/*
#include <cuda.h>

static CUresult pool_create(CUmemoryPool *pool, int device) {
	CUmemPoolProps p = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	return cuMemPoolCreate(pool, &p);
}
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// The calls that only programs make: the tests of this module are such programs.

// MemAllocManaged allocates memory that the CPU and all devices reach, and that migrates between them.
func MemAllocManaged(n int64) (uintptr, error) {
	p, err := cu.MemAllocManaged(n, cu.AttachGlobal)
	return uintptr(p), failed("cuMemAllocManaged", err)
}

// MemcpyDtoH copies from the device and waits for the copy.
func MemcpyDtoH(dst []byte, src uintptr) error {
	return failed("cuMemcpyDtoH",
		cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst))))
}

// MemsetD8Async makes the stream set n bytes.
func MemsetD8Async(dst uintptr, value byte, n int64, s Stream) error {
	return failed("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(dst), value, n, s.cu()))
}

// PoolCreate makes a memory pool of the device that can be exported as a file descriptor.
func PoolCreate(d Device) (Pool, error) {
	var p C.CUmemoryPool
	err := result("cuMemPoolCreate", C.pool_create(&p, C.int(d)))
	return *(*Pool)(unsafe.Pointer(&p)), err
}

// MemAllocFromPoolAsync makes the stream allocate from the pool. Other streams may use the memory when
// the stream has done that.
func MemAllocFromPoolAsync(n int64, p Pool, s Stream) (uintptr, error) {
	var out C.CUdeviceptr
	err := result("cuMemAllocFromPoolAsync",
		C.cuMemAllocFromPoolAsync(&out, C.size_t(n), p.c(), s.c()))
	return uintptr(out), err
}
