//go:build cuda

package driver

/*
#include <cuda.h>

static CUmemAllocationProp device_memory(int device) {
	CUmemAllocationProp p = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	return p;
}
static CUresult granularity(size_t *n, int device) {
	CUmemAllocationProp p = device_memory(device);
	return cuMemGetAllocationGranularity(n, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}
static CUresult create(CUmemGenericAllocationHandle *h, size_t n, int device) {
	CUmemAllocationProp p = device_memory(device);
	return cuMemCreate(h, n, &p, 0);
}
static CUresult retain(CUmemGenericAllocationHandle *h, uintptr_t p) {
	return cuMemRetainAllocationHandle(h, (void *)p);
}
static CUresult import_fd(CUmemGenericAllocationHandle *h, int fd) {
	return cuMemImportFromShareableHandle(h, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}
static CUresult set_access(CUdeviceptr p, size_t n, int device, int writable) {
	CUmemAccessDesc d = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ,
	};
	return cuMemSetAccess(p, n, &d, 1);
}
*/
import "C"

import "unsafe"

// MemGranularity returns the number of bytes that sizes and addresses of physical allocations are
// multiples of.
func MemGranularity(d Device) (int64, error) {
	var n C.size_t
	err := result("cuMemGetAllocationGranularity", C.granularity(&n, C.int(d)))
	return int64(n), err
}

// MemCreate makes a physical allocation on the device that can be exported as a file descriptor.
func MemCreate(d Device, n int64) (MemHandle, error) {
	var h C.CUmemGenericAllocationHandle
	err := result("cuMemCreate", C.create(&h, C.size_t(n), C.int(d)))
	return MemHandle(h), err
}

// MemRelease releases a handle. The memory exists while it is mapped or has another handle.
func MemRelease(h MemHandle) error {
	return result("cuMemRelease", C.cuMemRelease(C.CUmemGenericAllocationHandle(h)))
}

// MemRetainAllocationHandle returns a handle of the physical allocation that is mapped at p.
func MemRetainAllocationHandle(p uintptr) (MemHandle, error) {
	var h C.CUmemGenericAllocationHandle
	err := result("cuMemRetainAllocationHandle", C.retain(&h, C.uintptr_t(p)))
	return MemHandle(h), err
}

// MemExport returns a new file descriptor of the physical allocation, which the caller closes.
func MemExport(h MemHandle) (fd int, err error) {
	var out C.int
	err = result("cuMemExportToShareableHandle", C.cuMemExportToShareableHandle(unsafe.Pointer(&out),
		C.CUmemGenericAllocationHandle(h), C.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
	return int(out), err
}

// MemImport returns a handle of the physical allocation of a descriptor from MemExport. The caller
// keeps the descriptor.
func MemImport(fd int) (MemHandle, error) {
	var h C.CUmemGenericAllocationHandle
	err := result("cuMemImportFromShareableHandle", C.import_fd(&h, C.int(fd)))
	return MemHandle(h), err
}

// MemAddressReserve reserves a range of addresses that the driver chooses.
func MemAddressReserve(n int64) (uintptr, error) {
	var p C.CUdeviceptr
	err := result("cuMemAddressReserve", C.cuMemAddressReserve(&p, C.size_t(n), 0, 0, 0))
	return uintptr(p), err
}

// MemAddressFree frees a whole reserved range. Nothing may be mapped in it.
func MemAddressFree(p uintptr, n int64) error {
	return result("cuMemAddressFree", C.cuMemAddressFree(C.CUdeviceptr(p), C.size_t(n)))
}

// MemMap maps a whole physical allocation of n bytes at p in a reserved range.
func MemMap(p uintptr, n int64, h MemHandle) error {
	return result("cuMemMap",
		C.cuMemMap(C.CUdeviceptr(p), C.size_t(n), 0, C.CUmemGenericAllocationHandle(h), 0))
}

// MemUnmap unmaps whole physical allocations. It may wait for all streams, as FreeHost does.
func MemUnmap(p uintptr, n int64) error {
	return result("cuMemUnmap", C.cuMemUnmap(C.CUdeviceptr(p), C.size_t(n)))
}

// MemSetAccess lets the device read mapped memory, and write it if writable.
func MemSetAccess(p uintptr, n int64, d Device, writable bool) error {
	var w C.int
	if writable {
		w = 1
	}
	return result("cuMemSetAccess", C.set_access(C.CUdeviceptr(p), C.size_t(n), C.int(d), w))
}
