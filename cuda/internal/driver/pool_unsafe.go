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
static CUresult pool_import(CUmemoryPool *pool, int fd) {
	return cuMemPoolImportFromShareableHandle(pool, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}
static CUresult pool_set_access(CUmemoryPool pool, int device, int writable) {
	CUmemAccessDesc d = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ,
	};
	return cuMemPoolSetAccess(pool, &d, 1);
}
*/
import "C"

import "unsafe"

// PoolCreate makes a memory pool of the device that can be exported as a file descriptor.
func PoolCreate(d Device) (Pool, error) {
	var p C.CUmemoryPool
	err := result("cuMemPoolCreate", C.pool_create(&p, C.int(d)))
	return *(*Pool)(unsafe.Pointer(&p)), err
}

// PoolDestroy ends a pool, once its allocations are freed.
func PoolDestroy(p Pool) error { return result("cuMemPoolDestroy", C.cuMemPoolDestroy(p.c())) }

// PoolExport gives a new file descriptor of the pool, which the caller closes.
func PoolExport(p Pool) (fd int, err error) {
	var out C.int
	err = result("cuMemPoolExportToShareableHandle", C.cuMemPoolExportToShareableHandle(
		unsafe.Pointer(&out), p.c(), C.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0,
	))
	return int(out), err
}

// PoolImport gives the pool that PoolExport made the descriptor of. The descriptor stays the caller's.
// Nothing can be allocated from an imported pool.
func PoolImport(fd int) (Pool, error) {
	var p C.CUmemoryPool
	err := result("cuMemPoolImportFromShareableHandle", C.pool_import(&p, C.int(fd)))
	return *(*Pool)(unsafe.Pointer(&p)), err
}

// PoolExportPointer names an allocation for processes that imported its pool.
func PoolExportPointer(p uintptr) (PoolPtr, error) {
	var out PoolPtr
	err := result("cuMemPoolExportPointer",
		C.cuMemPoolExportPointer((*C.CUmemPoolPtrExportData)(unsafe.Pointer(&out)), C.CUdeviceptr(p)))
	return out, err
}

// PoolImportPointer gives the address of an allocation of an imported pool. MemFreeAsync gives it back
// here; its owner must not have freed it before.
func PoolImportPointer(p Pool, data PoolPtr) (uintptr, error) {
	var out C.CUdeviceptr
	err := result("cuMemPoolImportPointer",
		C.cuMemPoolImportPointer(&out, p.c(), (*C.CUmemPoolPtrExportData)(unsafe.Pointer(&data))))
	return uintptr(out), err
}

// PoolSetAccess lets the device read the pool's memory, and write it if writable.
func PoolSetAccess(p Pool, d Device, writable bool) error {
	var w C.int
	if writable {
		w = 1
	}
	return result("cuMemPoolSetAccess", C.pool_set_access(p.c(), C.int(d), w))
}

// MemAllocFromPoolAsync allocates from the pool; the memory may be used on the stream, and elsewhere
// once the stream has come there.
func MemAllocFromPoolAsync(n int64, p Pool, s Stream) (uintptr, error) {
	var out C.CUdeviceptr
	err := result("cuMemAllocFromPoolAsync",
		C.cuMemAllocFromPoolAsync(&out, C.size_t(n), p.c(), s.c()))
	return uintptr(out), err
}

// MemFreeAsync frees memory of a pool when the stream comes there.
func MemFreeAsync(p uintptr, s Stream) error {
	return result("cuMemFreeAsync", C.cuMemFreeAsync(C.CUdeviceptr(p), s.c()))
}

func (p Pool) c() C.CUmemoryPool { return *(*C.CUmemoryPool)(unsafe.Pointer(&p)) }
