/* Modules of PTX text, their functions, and launches. A library is a module that no context owns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

struct function {
	const struct kernel *kernel;
	struct module *module;
	bool loaded; /* on a GPU */
	struct function *next;
};

struct module {
	struct context *context;
	struct function *functions;
	struct module *next;
};

static struct module *modules;

static void add_function(struct module *m, const struct kernel *k) {
	struct function *f = must(calloc(1, sizeof *f));
	*f = (struct function){.kernel = k, .module = m, .next = m->functions};
	m->functions = f;
	handle_add(FUNCTION, f);
}

static CUresult module_new(struct context *c, const char *ptx, struct module **out) {
	static const char entry[] = ".entry", blank[] = " \t\r\n";
	if (!ptx)
		return CUDA_ERROR_INVALID_VALUE;
	if (ptx[0] == 0x7f || ptx[0] == 0x50 || (unsigned char)ptx[0] >= 0x80) /* ELF, or a fat binary */
		return CUDA_ERROR_INVALID_IMAGE;
	if (!strstr(ptx, ".version"))
		return CUDA_ERROR_INVALID_PTX;
	struct module *m = must(calloc(1, sizeof *m));
	*m = (struct module){.context = c, .next = modules};
	modules = m;
	handle_add(MODULE, m);
	for (const char *p = ptx; (p = strstr(p, entry));) {
		p += strlen(entry);
		const char *name = p + strspn(p, blank);
		const struct kernel *k = kernel_named(name, strcspn(name, " \t\r\n("));
		if (k)
			add_function(m, k);
	}
	*out = m;
	return CUDA_SUCCESS;
}

static void module_free(struct module *m) {
	struct module **p = &modules;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	for (struct function *f = m->functions, *next; f; f = next) {
		next = f->next;
		handle_remove(f);
		free(f);
	}
	handle_remove(m);
	free(m);
}

void context_free_modules(struct context *c) {
	for (struct module *m = modules, *next; m; m = next) {
		next = m->next;
		if (m->context == c)
			module_free(m);
	}
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
	struct context *c;
	TRY(enter_context(&c));
	settle_context(c);
	return leave(module_new(c, image, (struct module **)out));
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values) {
	(void)count;
	(void)options;
	(void)values;
	return cuModuleLoadData(out, image);
}

CUresult cuModuleLoad(CUmodule *out, const char *path) {
	FILE *file = fopen(path, "re");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	char *text = NULL;
	size_t room = 0;
	CUresult result = getdelim(&text, &room, 0, file) < 0 ? CUDA_ERROR_INVALID_IMAGE : cuModuleLoadData(out, text);
	free(text);
	fclose(file);
	return result;
}

static CUresult unload(const void *handle) {
	TRY(enter());
	if (!handle_is(MODULE, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	struct context *c = ((struct module *)handle)->context;
	module_free((struct module *)handle);
	if (c)
		settle_context(c);
	return leave(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule handle) {
	return unload(handle);
}

/* Brings a function to a GPU, unless it is there. */
static void function_load(struct function *f, struct context *c) {
	if (!f->loaded)
		settle_context(c);
	f->loaded = true;
}

static CUresult function_named(const void *handle, const char *name, struct function **out) {
	TRY(enter());
	if (!handle_is(MODULE, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	for (struct function *f = ((struct module *)handle)->functions; f; f = f->next) {
		if (!strcmp(f->kernel->name, name)) {
			if (f->module->context)
				function_load(f, f->module->context);
			*out = f;
			return leave(CUDA_SUCCESS);
		}
	}
	return leave(CUDA_ERROR_NOT_FOUND);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
	return function_named(handle, name, (struct function **)out);
}

CUresult cuModuleGetGlobal(CUdeviceptr *out, size_t *size, CUmodule handle, const char *name) {
	(void)out;
	(void)size;
	(void)handle;
	(void)name;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values, unsigned jit_count,
			   CUlibraryOption *options, void **values, unsigned count) {
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	TRY(enter());
	return leave(module_new(NULL, code, (struct module **)out));
}

CUresult cuLibraryUnload(CUlibrary handle) {
	return unload(handle);
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name) {
	return function_named(handle, name, (struct function **)out);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel) {
	struct context *c;
	TRY(enter_context(&c));
	if (!handle_is(FUNCTION, kernel))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	function_load((struct function *)kernel, c);
	*out = (CUfunction)kernel;
	return leave(CUDA_SUCCESS);
}

/* ----------------------------------------------------------------------------------- functions */

static CUresult enter_function(const void *handle, const struct kernel **k) {
	TRY(enter());
	if (!handle_is(FUNCTION, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	*k = ((const struct function *)handle)->kernel;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
	const struct kernel *k;
	TRY(enter_function(handle, &k));
	*value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
		 : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS	      ? 32
		 : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION	      ? 70
		 : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION      ? 90
								      : 0;
	return leave(CUDA_SUCCESS);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
	(void)device;
	return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
	const struct kernel *k;
	(void)attribute;
	(void)value;
	TRY(enter_function(handle, &k));
	return leave(CUDA_SUCCESS);
}

/* Of the way to launch before CUDA 4; PyCUDA still calls it. Launches say their shape themselves. */
CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
	const struct kernel *k;
	(void)x;
	(void)y;
	(void)z;
	TRY(enter_function(handle, &k));
	return leave(CUDA_SUCCESS);
}

CUresult cuFuncGetName(const char **name, CUfunction handle) {
	const struct kernel *k;
	TRY(enter_function(handle, &k));
	*name = k->name;
	return leave(CUDA_SUCCESS);
}

static size_t parameter_offset(const struct kernel *k, size_t index) {
	size_t offset = 0;
	for (size_t i = 0; i < index; i++)
		offset = round_up(offset, k->sizes[i]) + k->sizes[i];
	return round_up(offset, k->sizes[index]);
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
	const struct kernel *k;
	TRY(enter_function(handle, &k));
	if (index >= MAX_PARAMETERS || !k->sizes[index])
		return leave(CUDA_ERROR_INVALID_VALUE);
	*offset = parameter_offset(k, index);
	if (size)
		*size = k->sizes[index];
	return leave(CUDA_SUCCESS);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int size, size_t shared) {
	const struct kernel *k;
	(void)size;
	(void)shared;
	TRY(enter_function(handle, &k));
	*blocks = 2;
	return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------------------------- launches */

static CUresult run_launch(struct operation *o) {
	const struct launch *l = (const struct launch *)o;
	return l->kernel->run(l);
}

/* The packed form of the arguments: pairs of a key and a value, ended by NULL. */
static bool buffer_of(void **extra, const char **buffer, size_t *size) {
	*buffer = NULL;
	*size = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			*size = *(size_t *)extra[1];
		else
			return false;
	}
	return *buffer != NULL;
}

static bool read_arguments(struct launch *l, void **parameters, void **extra) {
	const char *buffer = NULL;
	size_t size = 0;
	if (parameters ? extra != NULL : !extra || !buffer_of(extra, &buffer, &size))
		return false;
	for (size_t i = 0; i < MAX_PARAMETERS && l->kernel->sizes[i]; i++) {
		size_t bytes = l->kernel->sizes[i], offset = parameter_offset(l->kernel, i);
		if (!parameters && offset + bytes > size)
			return false;
		memcpy(&l->arguments[i], parameters ? parameters[i] : buffer + offset, bytes);
	}
	return true;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
			void **extra) {
	struct context *c;
	struct stream *s;
	(void)shared;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	if (result != CUDA_SUCCESS)
		return leave(result);
	const struct function *f = (const struct function *)handle;
	if (!handle_is(FUNCTION, handle) || (f->module->context && f->module->context != s->context))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	uint64_t threads = (uint64_t)block_x * block_y * block_z;
	if (!threads || threads > 1024 || !grid_x || !grid_y || !grid_z)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct launch *l = operation_new(sizeof *l, run_launch);
	l->kernel = f->kernel;
	l->grid = grid_x;
	l->block = block_x;
	l->operation.reads = true;
	if (!read_arguments(l, parameters, extra)) {
		operation_free(&l->operation);
		return leave(CUDA_ERROR_INVALID_VALUE);
	}
	return leave(stream_queue(s, &l->operation));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **parameters, void **extra) {
	return cuLaunchKernel(handle, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
			      config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters,
			      extra);
}
