//go:build cuda

package driver

/*
#include <cuda.h>

static CUresult copy_rows(CUdeviceptr dst, size_t dst_pitch, CUdeviceptr src, size_t src_pitch,
		size_t width, size_t height, CUstream s) {
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = src, .srcPitch = src_pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = dst, .dstPitch = dst_pitch,
		.WidthInBytes = width, .Height = height,
	};
	return cuMemcpy2DAsync(&c, s);
}
*/
import "C"

import "unsafe"

// Built reports whether this binary has CUDA.
const Built = true

// CtxID returns a number that no other context of this process ever has.
func CtxID(ctx Context) (uint64, error) {
	var id C.ulonglong
	err := result("cuCtxGetId", C.cuCtxGetId(*(*C.CUcontext)(unsafe.Pointer(&ctx)), &id))
	return uint64(id), err
}

// StreamCtx returns the context of a stream. For the default streams that is the current context.
func StreamCtx(s Stream) (Context, error) {
	var ctx C.CUcontext
	err := result("cuStreamGetCtx", C.cuStreamGetCtx(s.c(), &ctx))
	return *(*Context)(unsafe.Pointer(&ctx)), err
}

// StreamCapturing reports whether a graph captures the stream's work.
func StreamCapturing(s Stream) (bool, error) {
	var status C.CUstreamCaptureStatus
	err := result("cuStreamIsCapturing", C.cuStreamIsCapturing(s.c(), &status))
	return status != C.CU_STREAM_CAPTURE_STATUS_NONE, err
}

// relaxed lets the calling thread make calls that would break a capture of another thread's stream. The
// result undoes that. The caller locks its thread around both.
func relaxed() (undo func()) {
	mode := C.CUstreamCaptureMode(C.CU_STREAM_CAPTURE_MODE_RELAXED)
	if C.cuThreadExchangeStreamCaptureMode(&mode) != C.CUDA_SUCCESS {
		return func() {}
	}
	return func() { C.cuThreadExchangeStreamCaptureMode(&mode) }
}

// MemcpyAsync makes the stream copy between any two addresses that the current context reaches.
func MemcpyAsync(dst, src uintptr, n int64, s Stream) error {
	return result("cuMemcpyAsync",
		C.cuMemcpyAsync(C.CUdeviceptr(dst), C.CUdeviceptr(src), C.size_t(n), s.c()))
}

// MemcpyRowsAsync makes the stream copy height rows of width bytes, which begin dstPitch and srcPitch
// bytes apart, between any two addresses that the current context reaches.
func MemcpyRowsAsync(dst uintptr, dstPitch int64, src uintptr, srcPitch, width, height int64, s Stream) error {
	return result("cuMemcpy2DAsync", C.copy_rows(C.CUdeviceptr(dst), C.size_t(dstPitch),
		C.CUdeviceptr(src), C.size_t(srcPitch), C.size_t(width), C.size_t(height), s.c()))
}
