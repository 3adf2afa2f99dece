//go:build cuda

package driver

/*
#include <cuda.h>

// Handles by address: cgo passes no arrays by value.
static CUresult open_mem(CUdeviceptr *p, const CUipcMemHandle *h) {
	return cuIpcOpenMemHandle(p, *h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
*/
import "C"

import "unsafe"

// IPCGetMemHandle returns the handle by which other processes open the whole allocation that p lies in.
func IPCGetMemHandle(p uintptr) (IPCMem, error) {
	var h IPCMem
	err := result("cuIpcGetMemHandle",
		C.cuIpcGetMemHandle((*C.CUipcMemHandle)(unsafe.Pointer(&h)), C.CUdeviceptr(p)))
	return h, err
}

// IPCOpenMemHandle maps an allocation of another process into the current context, and returns the
// address of its first byte.
func IPCOpenMemHandle(h IPCMem) (uintptr, error) {
	var p C.CUdeviceptr
	err := result("cuIpcOpenMemHandle", C.open_mem(&p, (*C.CUipcMemHandle)(unsafe.Pointer(&h))))
	return uintptr(p), err
}

// IPCCloseMemHandle unmaps memory from IPCOpenMemHandle. It may wait for all streams, as FreeHost does.
func IPCCloseMemHandle(p uintptr) error {
	return result("cuIpcCloseMemHandle", C.cuIpcCloseMemHandle(C.CUdeviceptr(p)))
}
