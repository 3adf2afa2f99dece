/* Kernels, faults, and how programs find functions. */
#include "checks.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry ndbridge_fill_u32(.param .u64 to, .param .u32 value, .param .u64 count)\n{ ret; }\n"
			  ".visible .entry ndbridge_spin (.param .u64 us)\n{ ret; }\n"
			  ".visible .entry of_nobody(.param .u64 a)\n{ ret; }\n";

static CUfunction function_of(const char *name) {
	CUmodule module;
	CUfunction f;
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&f, module, name));
	return f;
}

static CUresult launch(CUfunction f, CUstream s, void **parameters, void **extra) {
	return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, parameters, extra);
}

void check_kernels(void) {
	use_primary_slowly();
	CUmodule module;
	CUfunction f = function_of("ndbridge_fill_u32"), unused;
	CUdeviceptr p = memory_of(0);
	CUstream s = new_stream();
	uint32_t value = 11;
	uint64_t count = COUNT;
	void *parameters[] = {&p, &value, &count};
	OK(launch(f, s, parameters, NULL));
	value = 0; /* arguments are read at the launch */
	CHECK(all_words(p, 0));
	OK(cuStreamSynchronize(s));
	CHECK(all_words(p, 11));

	struct {
		CUdeviceptr p;
		uint32_t value;
		uint64_t count;
	} packed = {p, 12, COUNT};
	size_t size = sizeof packed, offset, width;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	OK(launch(f, NULL, NULL, extra));
	CHECK(all_words(p, 12));
	OK(cuFuncGetParamInfo(f, 2, &offset, &width));
	CHECK(offset == 16 && width == 8);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 3, &offset, &width));

	EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, "no text of that kind"));
	EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "\x7f" "ELF"));
	OK(cuModuleLoadData(&module, ptx));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&unused, module, "of_nobody"));
	OK(cuModuleUnload(module));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
}

void check_kernel_faults(void) {
	use_primary();
	CUfunction f = function_of("ndbridge_fill_u32");
	CUdeviceptr p = memory_of(0);
	uint32_t value = 1;
	uint64_t count = COUNT + 1;
	void *parameters[] = {&p, &value, &count};
	OK(launch(f, NULL, parameters, NULL));
	EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&p, SIZE));
	CUcontext other;
	OK(cuCtxCreate(&other, 0, 0)); /* other contexts go on */
	memory_of(1);
}

void check_out_of_memory(void) {
	use_primary();
	CUdeviceptr p, q;
	CHECK(cudasim_fault("oom=2") == 0);
	OK(cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, SIZE));
	OK(cuMemAlloc(&q, SIZE));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, (size_t)1 << 40));
}

void check_lost(void) {
	CUcontext c = use_primary();
	CUdeviceptr word = memory_of(0), p;
	CUstream s = new_stream();
	CUevent e;
	OK(cuEventCreate(&e, 0));
	OK(cuStreamWaitValue32(s, word, 1, CU_STREAM_WAIT_VALUE_EQ)); /* which never comes */
	CHECK(cudasim_fault("lost=719") == 0);
	EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(s)); /* but nobody hangs */
	EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuCtxRecordEvent(c, e));
	EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuDevicePrimaryCtxRetain(&c, 0));
}

void check_refusals(void) {
	CUcontext c = use_primary();
	CUdeviceptr p = memory_of(0);
	CUipcMemHandle handle;
	CUevent e;
	int value, page[1024];
	OK(cuEventCreate(&e, 0));
	CHECK(cudasim_fault("no such word") == -1);
	CHECK(cudasim_fault("noipc,nowords,norecord,noregister,noexport,nopeer") == 0);
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(&handle, p));
	OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	CHECK(value == 0);
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuStreamWriteValue32(NULL, p, 1, 0));
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0));
	CHECK(value == 0);
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuCtxRecordEvent(c, e));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(page, sizeof page, 0));
	CHECK(cudasim_fault("") == 0);
	OK(cuIpcGetMemHandle(&handle, p));
}

void check_entry_points(void) {
	void *f;
	int version;
	const char *text;
	CUdriverProcAddressQueryResult status;
	OK(cuInit(0));
	OK(cuGetProcAddress_v2("cuMemAlloc", &f, 12040, 0, &status));
	CHECK(f == (void *)cuMemAlloc && status == CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress_v2("cuCtxRecordEvent", &f, 12050, 0, NULL));
	CHECK(f == (void *)cuCtxRecordEvent);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuOfTheFuture", &f, 99990, 0, NULL));
	OK(cuDriverGetVersion(&version));
	CHECK(version == 12080);
	CHECK(cudasim_fault("version=12000") == 0);
	OK(cuDriverGetVersion(&version));
	CHECK(version == 12000);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuCtxRecordEvent", &f, 12050, 0, NULL));
	OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(!strcmp(text, "out of memory"));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexRefCreate((CUtexref *)&f)); /* a function that is not simulated */
}
