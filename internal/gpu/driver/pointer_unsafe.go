//go:build cuda

package driver

/*
#include <cuda.h>

// Each attribute has a word of its own: the driver writes what it has of it, a byte or all eight.
typedef struct {
	uint64_t context, memory_type, device_pointer, host_pointer, buffer_id, managed, ordinal;
	uint64_t ipc, mapped, handle_types, pool;
} attributes;

static CUresult pointer_attributes(CUdeviceptr p, attributes *a) {
	CUpointer_attribute names[] = {
		CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_BUFFER_ID,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
		CU_POINTER_ATTRIBUTE_MAPPED,
		CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
		CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	};
	void *into[] = {
		&a->context, &a->memory_type, &a->host_pointer, &a->buffer_id, &a->managed,
		&a->ordinal, &a->ipc, &a->mapped, &a->handle_types, &a->pool, &a->device_pointer,
	};
	unsigned int n = sizeof names / sizeof *names;
	CUresult r = cuPointerGetAttributes(n, names, into, p);
	// Only the last one may ask for a current context.
	return r == CUDA_ERROR_INVALID_CONTEXT ? cuPointerGetAttributes(n - 1, names, into, p) : r;
}

#cgo noescape pointer_attributes
#cgo nocallback pointer_attributes
*/
import "C"

import "unsafe"

// PointerAttributes returns what the driver knows of an address, in one call. The Type of an unknown
// address is NoMemory. Only DevicePointer needs a current context.
func PointerAttributes(p uintptr) (Attributes, error) {
	var a C.attributes
	if err := result("cuPointerGetAttributes", C.pointer_attributes(C.CUdeviceptr(p), &a)); err != nil {
		return Attributes{}, err
	}
	return Attributes{
		Type:          MemoryType(a.memory_type),
		Managed:       a.managed != 0,
		Mapped:        a.mapped != 0,
		IPC:           a.ipc != 0,
		Device:        Device(a.ordinal), // an int, in the low half of its word
		HandleTypes:   uint32(a.handle_types),
		Context:       Context(a.context),
		Pool:          Pool(a.pool),
		DevicePointer: uintptr(a.device_pointer),
		HostPointer:   uintptr(a.host_pointer),
		BufferID:      uint64(a.buffer_id),
	}, nil
}

// PointerBufferID returns the number of the allocation at an address, which no other one of this process ever has. The
// error is an [Error] with InvalidValue if there is none.
func PointerBufferID(p uintptr) (uint64, error) {
	var id C.ulonglong
	err := result("cuPointerGetAttribute", C.cuPointerGetAttribute(unsafe.Pointer(&id), C.CU_POINTER_ATTRIBUTE_BUFFER_ID, C.CUdeviceptr(p)))
	return uint64(id), err
}
