/* What stands in for libcuda.so.1 in our binaries: see build.sh. */
#ifndef NDBRIDGE_STUB_H
#define NDBRIDGE_STUB_H

#include <cuda.h>

/* Driver functions that are younger than the oldest header we build with. */
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent);

/* The driver's own cuInit. The function of that name does nothing (stub.c). */
CUresult ndbridge_cuInit(unsigned int Flags);

/* Whether somebody else has initialised CUDA in this process. It neither loads nor initialises. */
int ndbridge_cuda_active(void);

/* Why libcuda.so.1 could not be loaded, in the loader's words, or "". Loads it if nobody has. */
const char *ndbridge_cuda_reason(void);

/* For the functions that stubs.awk writes. Finds the driver's function, remembering it in slot. */
void *ndbridge_cuda_find(void *_Atomic *slot, const char *name);

/* What a function answers that was not found. */
CUresult ndbridge_cuda_missing(void);

#endif
