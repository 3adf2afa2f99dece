/*
 * The kernels that exist: PTX text is searched for `.entry NAME`, and NAME is one of these. On a real
 * GPU the same text is compiled, so it must do the same:
 *
 *   ndbridge_fill_u32(u32 *to, u32 value, u64 count)             to[i] = value
 *   ndbridge_copy_u32(u32 *to, const u32 *from, u64 count)       to[i] = from[i]
 *   ndbridge_add_f32(f32 *to, const f32 *from, u64 count)        to[i] += from[i]
 *   ndbridge_scale_f32(f32 *to, f32 factor, u64 count)           to[i] *= factor
 *   ndbridge_spin(u64 microseconds)                              takes that long
 *   scale(f32 *to, f32 factor, u64 count)                        the same, of examples/gpu
 *
 * and those of the GPU tests, which let a time pass first:
 *
 *   wait(u64 nanoseconds)
 *   copy(u32 *to, const u32 *from, u64 count, u64 nanoseconds)   to[i] = from[i]
 *   add(f32 *to, u64 count, f32 amount, u64 nanoseconds)         to[i] += amount
 *
 * and those of package stats, whose source is stats/internal/kernels/kernels.cu:
 *
 *   ndbridge_stats_sum(const char *data, const char *base, struct job *job)
 *   ndbridge_stats_bins(const char *data, const char *base, struct job *job)
 *   ndbridge_stats_patterns(const char *data, const char *base, struct job *job)
 */
#ifndef CUDASIM_KERNELS_H
#define CUDASIM_KERNELS_H

#include "sim.h"

enum { MAX_PARAMETERS = 4 };

struct launch {
	struct operation operation;
	const struct kernel *kernel;
	unsigned grid, block; /* along x */
	uint64_t arguments[MAX_PARAMETERS]; /* each in its first bytes */
};

struct kernel {
	const char *name;
	unsigned char sizes[MAX_PARAMETERS]; /* of the parameters; 0 ends */
	CUresult (*run)(const struct launch *);
};

CUresult stats_sum(const struct launch *); /* summary.c */
CUresult stats_bins(const struct launch *);
CUresult stats_patterns(const struct launch *);

/* The first count bytes of text name it; NULL if there is none. */
const struct kernel *kernel_named(const char *text, size_t length);

#endif
