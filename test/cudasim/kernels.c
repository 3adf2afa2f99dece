/* The kernels, as the header lists them. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static float float_of(uint64_t argument) {
	float value;
	memcpy(&value, &argument, sizeof value);
	return value;
}

/* Memory that an argument points to; NULL, and nothing to close, if it cannot be used so. */
static void *open_argument(const struct launch *l, int i, size_t size, bool write, struct area **area) {
	lock();
	char *p = pin(l->arguments[i], size, write, area);
	unlock();
	return p;
}

static void close_argument(struct area *area) {
	lock();
	unpin(area);
	unlock();
}

static CUresult fill_u32(const struct launch *l) {
	struct area *area;
	uint64_t count = l->arguments[2];
	uint32_t *to = open_argument(l, 0, count * sizeof *to, true, &area);
	if (!to)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	pass_time(&l->operation, l->operation.delay_us);
	for (uint64_t i = 0; i < count; i++)
		to[i] = (uint32_t)l->arguments[1];
	close_argument(area);
	return CUDA_SUCCESS;
}

/* to[i] = to[i] * factor + amount */
static CUresult transform(const struct launch *l, uint64_t count, float factor, float amount, uint64_t us) {
	struct area *area;
	float *to = open_argument(l, 0, count * sizeof *to, true, &area);
	if (!to)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	float *read = read_slowly(&l->operation, to, count * sizeof *to, us);
	for (uint64_t i = 0; i < count; i++)
		to[i] = read[i] * factor + amount;
	free(read);
	close_argument(area);
	return CUDA_SUCCESS;
}

static CUresult scale_f32(const struct launch *l) {
	return transform(l, l->arguments[2], float_of(l->arguments[1]), 0, 0);
}

static CUresult add(const struct launch *l) {
	return transform(l, l->arguments[1], 1, float_of(l->arguments[2]), l->arguments[3] / 1000);
}

/* Kernels with a memory to write, a memory to read, and a count of words of 4 bytes. */
static CUresult two_memories(const struct launch *l, uint64_t us, void (*work)(void *, const void *, uint64_t)) {
	struct area *to_area, *from_area;
	uint64_t count = l->arguments[2];
	void *to = open_argument(l, 0, count * 4, true, &to_area);
	if (!to)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	const void *from = open_argument(l, 1, count * 4, false, &from_area);
	if (from) {
		void *read = read_slowly(&l->operation, from, count * 4, us);
		work(to, read, count);
		free(read);
		close_argument(from_area);
	}
	close_argument(to_area);
	return from ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void copy_words(void *to, const void *from, uint64_t count) {
	memcpy(to, from, count * 4);
}

static void add_floats(void *to, const void *from, uint64_t count) {
	for (uint64_t i = 0; i < count; i++)
		((float *)to)[i] += ((const float *)from)[i];
}

static CUresult copy_u32(const struct launch *l) {
	return two_memories(l, 0, copy_words);
}

static CUresult copy(const struct launch *l) {
	return two_memories(l, l->arguments[3] / 1000, copy_words);
}

static CUresult add_f32(const struct launch *l) {
	return two_memories(l, 0, add_floats);
}

static CUresult spin(const struct launch *l) {
	pass_time(&l->operation, l->operation.delay_us + l->arguments[0]);
	return CUDA_SUCCESS;
}

static CUresult wait(const struct launch *l) {
	pass_time(&l->operation, l->operation.delay_us + l->arguments[0] / 1000);
	return CUDA_SUCCESS;
}

static const struct kernel kernels[] = {
	{"ndbridge_fill_u32", {8, 4, 8}, fill_u32},
	{"ndbridge_copy_u32", {8, 8, 8}, copy_u32},
	{"ndbridge_add_f32", {8, 8, 8}, add_f32},
	{"ndbridge_scale_f32", {8, 4, 8}, scale_f32},
	{"ndbridge_spin", {8}, spin},
	{"scale", {8, 4, 8}, scale_f32},
	{"wait", {8}, wait},
	{"copy", {8, 8, 8, 8}, copy},
	{"add", {8, 8, 4, 8}, add},
	{"ndbridge_stats_sum", {8, 8, 8}, stats_sum},
	{"ndbridge_stats_bins", {8, 8, 8}, stats_bins},
	{"ndbridge_stats_patterns", {8, 8, 8}, stats_patterns},
};

const struct kernel *kernel_named(const char *text, size_t length) {
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		if (strlen(kernels[i].name) == length && memcmp(kernels[i].name, text, length) == 0)
			return &kernels[i];
	}
	return NULL;
}
