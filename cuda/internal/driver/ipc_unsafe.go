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

// IPCGetMemHandle names the whole allocation that p lies in, for other processes.
func IPCGetMemHandle(p uintptr) (IPCMem, error) {
	var h IPCMem
	err := result("cuIpcGetMemHandle",
		C.cuIpcGetMemHandle((*C.CUipcMemHandle)(unsafe.Pointer(&h)), C.CUdeviceptr(p)))
	return h, err
}

// IPCOpenMemHandle maps an allocation of another process into the current context. Its address here
// is that of the allocation's first byte.
func IPCOpenMemHandle(h IPCMem) (uintptr, error) {
	var p C.CUdeviceptr
	err := result("cuIpcOpenMemHandle", C.open_mem(&p, (*C.CUipcMemHandle)(unsafe.Pointer(&h))))
	return uintptr(p), err
}

// IPCCloseMemHandle unmaps what IPCOpenMemHandle gave. It may wait for all streams, as FreeHost does.
func IPCCloseMemHandle(p uintptr) error {
	return result("cuIpcCloseMemHandle", C.cuIpcCloseMemHandle(C.CUdeviceptr(p)))
}
