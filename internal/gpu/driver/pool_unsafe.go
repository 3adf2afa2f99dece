//go:build cuda

package driver

/*
#include <cuda.h>

static CUresult pool_import(CUmemoryPool *pool, int fd) {
	return cuMemPoolImportFromShareableHandle(pool, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}
*/
import "C"

import "unsafe"

// PoolDestroy destroys a pool when its allocations are freed.
func PoolDestroy(p Pool) error { return result("cuMemPoolDestroy", C.cuMemPoolDestroy(p.c())) }

// PoolExport returns a new file descriptor of the pool, which the caller closes.
func PoolExport(p Pool) (fd int, err error) {
	var out C.int
	err = result("cuMemPoolExportToShareableHandle", C.cuMemPoolExportToShareableHandle(
		unsafe.Pointer(&out), p.c(), C.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0,
	))
	return int(out), err
}

// PoolImport returns the pool of a descriptor from PoolExport. The caller keeps the descriptor. An
// imported pool allocates nothing.
func PoolImport(fd int) (Pool, error) {
	var p C.CUmemoryPool
	err := result("cuMemPoolImportFromShareableHandle", C.pool_import(&p, C.int(fd)))
	return *(*Pool)(unsafe.Pointer(&p)), err
}

// PoolExportPointer returns the handle by which processes that imported its pool open an allocation.
func PoolExportPointer(p uintptr) (PoolPtr, error) {
	var out PoolPtr
	err := result("cuMemPoolExportPointer",
		C.cuMemPoolExportPointer((*C.CUmemPoolPtrExportData)(unsafe.Pointer(&out)), C.CUdeviceptr(p)))
	return out, err
}

// PoolImportPointer returns the address of an allocation of an imported pool. MemFreeAsync frees it in
// this process. Its owner must not free it before the stream has done that.
func PoolImportPointer(p Pool, data PoolPtr) (uintptr, error) {
	var out C.CUdeviceptr
	err := result("cuMemPoolImportPointer",
		C.cuMemPoolImportPointer(&out, p.c(), (*C.CUmemPoolPtrExportData)(unsafe.Pointer(&data))))
	return uintptr(out), err
}

// MemFreeAsync makes the stream free memory of a pool.
func MemFreeAsync(p uintptr, s Stream) error {
	return result("cuMemFreeAsync", C.cuMemFreeAsync(C.CUdeviceptr(p), s.c()))
}

func (p Pool) c() C.CUmemoryPool { return *(*C.CUmemoryPool)(unsafe.Pointer(&p)) }
