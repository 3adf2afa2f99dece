/* How programs find this library's functions, and what errors are called. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

/* Functions whose variants are not simply the plain one and _v2: from which version on which one is meant. */
static const struct {
	const char *name;
	int since;
	const char *variant;
} variants[] = {
	{"cuCtxCreate", 12050, "cuCtxCreate_v4"},
	{"cuCtxCreate", 11040, "cuCtxCreate_v3"},
	{"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
	{"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
	{"cuGetProcAddress", 0, "cuGetProcAddress"},
};

static void *self(void) {
	Dl_info here;
	return dladdr((void *)cuInit, &here) ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static void *find(const char *name, int version) {
	char second[128];
	void *library = self(), *found = NULL;
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!strcmp(variants[i].name, name) && version >= variants[i].since) {
			found = dlsym(library, variants[i].variant);
			break;
		}
	}
	snprintf(second, sizeof second, "%s_v2", name);
	if (!found)
		found = dlsym(library, second);
	if (!found)
		found = dlsym(library, name);
	if (library)
		dlclose(library);
	return found;
}

/* Drivers before 12.5 do not have it. */
static bool too_new(const char *name) {
	return !strcmp(name, "cuCtxRecordEvent") && (faults.no_record || faults.version < 12050);
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status) {
	(void)flags;
	*out = too_new(name) ? NULL : find(name, version);
	if (status)
		*status = *out ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
EXPORTED CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags) {
	return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id) {
	(void)id;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* -------------------------------------------------------------------------------------- errors */

static const struct {
	CUresult value;
	const char *name;
} errors[] = {
#include "errors.inc"
};

enum { ERRORS = sizeof errors / sizeof *errors };

static size_t index_of(CUresult value) {
	size_t i = 0;
	while (i < ERRORS && errors[i].value != value)
		i++;
	return i;
}

CUresult cuGetErrorName(CUresult value, const char **text) {
	size_t i = index_of(value);
	*text = i < ERRORS ? errors[i].name : NULL;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The real driver's descriptions are its own; these are the names in plain letters. */
CUresult cuGetErrorString(CUresult value, const char **text) {
	static _Thread_local char description[128];
	size_t i = index_of(value);
	*text = NULL;
	if (i == ERRORS)
		return CUDA_ERROR_INVALID_VALUE;
	const char *name = errors[i].name;
	if (!strncmp(name, "CUDA_ERROR_", 11))
		name += 11;
	size_t n = 0;
	for (; name[n] && n < sizeof description - 1; n++)
		description[n] = (char)(name[n] == '_' ? ' ' : tolower((unsigned char)name[n]));
	description[n] = 0;
	*text = description;
	return CUDA_SUCCESS;
}
