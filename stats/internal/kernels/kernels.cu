/*
 * The kernels that sum up an array in memory of a GPU. compile.py makes kernels.ptx of it. The simulated driver compiles this
 * very text as C, with what CUDA adds to the language as macros (test/cudasim/summary.c), so it keeps to what both languages have.
 *
 * Elements are numbers in float64, as package stats has them. Each block gives one part; the host merges the parts. Of elements of a
 * byte, or less, the host needs only to know how many there are of each pattern. Blocks have a power of two of threads, at least 2.
 */
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define CALLED __noinline__
#define INLINE __forceinline__
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
static __device__ float as_float(unsigned bits) { return __uint_as_float(bits); }
static __device__ double as_double(unsigned long long bits) { return __longlong_as_double((long long)bits); }
static __device__ unsigned long long bits_of(double x) { return (unsigned long long)__double_as_longlong(x); }
static __device__ float half(unsigned bits) {
	float x;
	asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)bits));
	return x;
}
/* As many registers as leave room for so many blocks at once: others read while one calculates. */
#define ENTRY(blocks) extern "C" __global__ void __launch_bounds__(256, blocks)
#endif

typedef unsigned char u8;
typedef unsigned long long u64;
typedef long long i64;

enum { MAX_AXES = 32, EACH = 8, MAX_THREADS = 256 };

/* How the bytes of an element make a number. Package kernels has the same list. */
enum { SMALL, PACKED, UINT16, INT16, FLOAT16, BFLOAT16, UINT32, INT32, FLOAT32, UINT64, INT64, FLOAT64, COMPLEX32, COMPLEX64, COMPLEX128 };

/* An array as a sequence of numbers: the last axis changes fastest. Distances are in bytes, or in bits of packed elements, and are
 * relative to the address that the kernel is given. */
struct walker {
	i64 first;
	unsigned format, size; /* bytes of an element, or bits of a packed one */
	unsigned rank;
	unsigned order; /* of how many bytes the order is to be reversed; 0: of none */
	unsigned plain; /* elements lie where the GPU can load them at once */
	unsigned dense; /* they follow each other, too */
	u64 dim[MAX_AXES];
	i64 stride[MAX_AXES];
	float values[256]; /* of the patterns of small and packed elements */
};

enum { EQUAL_BINS, LOG_BINS };

/* What is to be done, as package kernels writes it. */
struct job {
	u64 n;             /* elements that are read */
	u64 total;         /* of the sequence */
	u64 chunks, run;   /* of a sample: as many runs of neighbours; run is 0 if all elements are read */
	u64 seed;
	double scale;      /* that of the sums: a power of two */
	double low, high, bin_scale, wrong;
	unsigned bins, how;
	unsigned copies;   /* of the counters in shared memory; 0: they are too many for it */
	unsigned subtract; /* base is there */
	u64 edges, counts, parts; /* where they lie behind the job, in bytes */
	struct walker from, base;
};

/* What a block has seen. */
struct part {
	u64 nan, pos_inf, neg_inf, zero, negative, n;
	double low, high, mean, squares; /* of the finite ones; squares of the differences to the mean */
};

/* ------------------------------------------------------------------------------------- elements */

/* As math.Hypot does it, to the last bit. */
static CALLED __device__ double magnitude(double p, double q) {
	p = fabs(p);
	q = fabs(q);
	double larger = p < q ? q : p, smaller = p < q ? p : q;
	if (isinf(p) || isinf(q))
		return as_double(0x7ffull << 52);
	if (p != p || q != q)
		return p + q;
	if (larger == 0)
		return 0;
	smaller = smaller / larger;
	return larger * sqrt(1 + smaller * smaller);
}

/* The number that the bytes of an element make. The second eight bytes are in hi. */
static __device__ double number(unsigned format, u64 lo, u64 hi, const float *values) {
	switch (format) {
	case UINT16:
		return (double)(unsigned short)lo;
	case INT16:
		return (double)(short)lo;
	case FLOAT16:
		return (double)half((unsigned short)lo);
	case BFLOAT16:
		return (double)as_float((unsigned)lo << 16);
	case UINT32:
		return (double)(unsigned)lo;
	case INT32:
		return (double)(int)lo;
	case FLOAT32:
		return (double)as_float((unsigned)lo);
	case UINT64:
		return (double)lo;
	case INT64:
		return (double)(i64)lo;
	case FLOAT64:
		return as_double(lo);
	case COMPLEX32:
		return magnitude((double)half((unsigned short)lo), (double)half((unsigned short)(lo >> 16)));
	case COMPLEX64:
		return magnitude((double)as_float((unsigned)lo), (double)as_float((unsigned)(lo >> 32)));
	case COMPLEX128:
		return magnitude(as_double(lo), as_double(hi));
	default: /* SMALL, PACKED */
		return (double)values[lo & 255];
	}
}

typedef struct __align__(16) {
	u64 lo, hi;
} pair;

/* What a thread reads of a dense stretch of EACH elements for each thread: neighbours read neighbouring words. */
static __device__ void load(unsigned format, unsigned size, double *x, const char *stretch, const float *values) {
	const unsigned words = 16 / size; /* elements of a pair; of bytes, half a pair will do */
	if (size == 1) {
		u64 v = ((const u64 *)stretch)[threadIdx.x];
		UNROLL
		for (unsigned k = 0; k < EACH; k++)
			x[k] = number(format, v >> (8 * k) & 255, 0, values);
		return;
	}
	UNROLL
	for (unsigned j = 0; j < EACH / words; j++) {
		pair v = ((const pair *)stretch)[j * blockDim.x + threadIdx.x];
		UNROLL
		for (unsigned i = 0; i < words; i++) {
			u64 lo = i * size < 8 ? v.lo : v.hi;
			x[j * words + i] = number(format, lo >> (i * size % 8 * 8), v.hi, values);
		}
	}
}

/* load, with a size that the compiler knows */
static __device__ void dense(const struct walker *w, double *x, const char *stretch, const float *values) {
#define DENSE(format, size)                              \
	case format:                                     \
		load(format, size, x, stretch, values);  \
		break
	switch (w->format) {
		DENSE(SMALL, 1);
		DENSE(UINT16, 2);
		DENSE(INT16, 2);
		DENSE(FLOAT16, 2);
		DENSE(BFLOAT16, 2);
		DENSE(UINT32, 4);
		DENSE(INT32, 4);
		DENSE(FLOAT32, 4);
		DENSE(UINT64, 8);
		DENSE(INT64, 8);
		DENSE(FLOAT64, 8);
		DENSE(COMPLEX32, 4);
		DENSE(COMPLEX64, 8);
		DENSE(COMPLEX128, 16);
	}
#undef DENSE
}

/* Where an element of the sequence lies, and its index along the last axis. */
struct spot {
	i64 where;
	u64 at, column;
};

static __device__ struct spot find(const struct walker *w, u64 at, int narrow) {
	struct spot s = {w->first, at, at};
	if (narrow) { /* to divide numbers of 32 bits takes a fraction of the time */
		unsigned rest = (unsigned)at;
		for (unsigned i = w->rank - 1; i > 0; i--) {
			unsigned dim = (unsigned)w->dim[i], next = rest / dim, index = rest - next * dim;
			if (i == w->rank - 1)
				s.column = index;
			s.where += (i64)index * w->stride[i];
			rest = next;
		}
		at = rest;
	} else {
		for (unsigned i = w->rank - 1; i > 0; i--) {
			u64 next = at / w->dim[i], index = at - next * w->dim[i];
			if (i == w->rank - 1)
				s.column = index;
			s.where += (i64)index * w->stride[i];
			at = next;
		}
	}
	s.where += (i64)at * w->stride[0];
	return s;
}

/* Goes to another element, along the last axis if that has both. */
static __device__ void go(struct spot *s, const struct walker *w, u64 at, int narrow) {
	const unsigned last = w->rank - 1;
	const u64 way = at - s->at, column = s->column + way; /* backwards they wrap around */
	if (column >= w->dim[last]) {
		*s = find(w, at, narrow);
		return;
	}
	s->where += (i64)way * w->stride[last];
	s->at = at;
	s->column = column;
}

/* The bytes of an element; the second eight of them are in hi. */
static __device__ u64 element(const struct walker *w, const char *data, i64 where, u64 *hi) {
	*hi = 0;
	if (w->format == PACKED) {
		const u8 *p = (const u8 *)data + (where >> 3);
		unsigned shift = (unsigned)where & 7, word = p[0];
		if (shift + w->size > 8)
			word |= (unsigned)p[1] << 8;
		return word >> shift & ((1u << w->size) - 1);
	}
	const u8 *p = (const u8 *)data + where;
	if (!w->plain) {
		u64 lo = 0;
		for (unsigned i = 0; i < w->size; i++) {
			u64 byte = p[w->order ? i / w->order * w->order + w->order - 1 - i % w->order : i];
			if (i < 8)
				lo |= byte << (8 * i);
			else
				*hi |= byte << (8 * (i - 8));
		}
		return lo;
	}
	switch (w->size) {
	case 1:
		return p[0];
	case 2:
		return *(const unsigned short *)p;
	case 4:
		return *(const unsigned *)p;
	case 16:
		*hi = ((const u64 *)p)[1];
		return ((const u64 *)p)[0];
	default:
		return ((const u64 *)p)[0];
	}
}

/* a*b/c without overflow, for b <= c */
static __device__ u64 muldiv(u64 a, u64 b, u64 c) {
	return a / c * b + a % c * b / c;
}

/* Which element of the sequence the next one of a sample is: the rule is that of stats.Options.Sample. */
static __device__ u64 sampled(const struct job *j, u64 at) {
	u64 chunk = at / j->run, from = muldiv(j->total, chunk, j->chunks), to = muldiv(j->total, chunk + 1, j->chunks);
	if (to - from > j->run) {
		u64 x = chunk + 0x9e3779b97f4a7c15ull;
		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
		x = (x ^ x >> 27) * 0x94d049bb133111ebull;
		x ^= x >> 31;
		u64 runs = (to - from + j->run - 1) / j->run, start = from + (x + j->seed) % runs * j->run;
		from = start < to - j->run ? start : to - j->run;
	}
	return from + at % j->run;
}

/* What the kernel is given, and what it keeps in a block's memory of it. */
struct source {
	const char *data, *base;
	const struct job *job;
	const float *values, *base_values;
};

/* Reads up to EACH elements that threads read together: those that are read as number at, at plus the threads of a block, and so on, and
 * before end. Those from head on lie behind skipped ones. It says which of them there are. */
static CALLED __device__ unsigned gather(const struct source *from, u64 at, u64 end, u64 head, u64 skipped, double *x) {
	const struct job *j = from->job;
	const int narrow = j->total >> 32 == 0;
	unsigned there = 0;
	struct spot spot = {0, 0, 1ull << 63}, base_spot = spot; /* in no row */
	for (unsigned k = 0; k < EACH; k++, at += blockDim.x) {
		x[k] = 0;
		if (at >= end)
			continue;
		there |= 1u << k;
		u64 hi, real = at < head ? at : at + skipped;
		if (j->run)
			real = sampled(j, real);
		go(&spot, &j->from, real, narrow);
		u64 lo = element(&j->from, from->data, spot.where, &hi);
		x[k] = number(j->from.format, lo, hi, from->values);
		if (j->subtract) {
			go(&base_spot, &j->base, real, narrow);
			lo = element(&j->base, from->base, base_spot.where, &hi);
			x[k] -= number(j->base.format, lo, hi, from->base_values);
		}
	}
	return there;
}

/* ----------------------------------------------------------------------------------------- sums */

/* What a thread has seen. The sums are of differences to a shift, the mean of the first elements of the block. So what rounding does to
 * the deviation is, at worst, as many times a rounding as the thread has read elements. */
struct sums {
	double low, high, shift, sum, squares;
	unsigned n, nan, pos_inf, neg_inf, zero, negative;
	unsigned shifted; /* else the shift is that of the first elements of the thread which are finite */
};

/* Adds those of the numbers that are there, and says which of them are finite. */
static __device__ unsigned add(struct sums *s, const double *x, unsigned there, double scale) {
	const unsigned all = (1u << EACH) - 1;
	double sum = 0, squares = 0;
	if (there == all && s->shifted && scale == 1) {
		/* In a tree, so that few operations wait for others. */
		double d[EACH], low[EACH], high[EACH], more = 0;
		UNROLL
		for (unsigned k = 0; k < EACH; k += 2) {
			d[k] = x[k] - s->shift;
			d[k + 1] = x[k + 1] - s->shift;
			squares = fma(d[k], d[k], squares);
			more = fma(d[k + 1], d[k + 1], more);
		}
		squares += more;
		UNROLL
		for (unsigned width = EACH / 2; width > 0; width /= 2) {
			UNROLL
			for (unsigned k = 0; k < width; k++)
				d[k] += d[k + width];
		}
		sum = d[0];
		if (sum - sum == 0) { /* else some number is not finite, or they are very large */
			UNROLL
			for (unsigned k = 0; k < EACH; k++) {
				low[k] = high[k] = x[k];
				s->zero += x[k] == 0;
				s->negative += x[k] < 0;
			}
			UNROLL
			for (unsigned width = EACH / 2; width > 0; width /= 2) {
				UNROLL
				for (unsigned k = 0; k < width; k++) {
					low[k] = low[k + width] < low[k] ? low[k + width] : low[k];
					high[k] = high[k + width] > high[k] ? high[k + width] : high[k];
				}
			}
			s->low = low[0] < s->low ? low[0] : s->low;
			s->high = high[0] > s->high ? high[0] : s->high;
			s->sum += sum;
			s->squares += squares;
			s->n += EACH;
			return all;
		}
		sum = squares = 0;
	}
	unsigned finite = 0, n = 0;
	UNROLL
	for (unsigned k = 0; k < EACH; k++) {
		unsigned here = there >> k & 1, is = here & (x[k] - x[k] == 0);
		finite |= is << k;
		n += is;
		s->nan += here & (x[k] != x[k]);
		s->pos_inf += here & !is & (x[k] > 0);
		s->neg_inf += here & !is & (x[k] < 0);
	}
	if (n == 0)
		return 0;
	if (!s->shifted) {
		sum = 0;
		UNROLL
		for (unsigned k = 0; k < EACH; k++)
			sum += finite >> k & 1 ? x[k] * scale : 0;
		s->shift = sum / n;
		s->shifted = 1;
	}
	sum = 0;
	UNROLL
	for (unsigned k = 0; k < EACH; k++) {
		unsigned is = finite >> k & 1;
		double d = is ? x[k] * scale - s->shift : 0;
		sum += d;
		squares = fma(d, d, squares);
		s->low = is && x[k] < s->low ? x[k] : s->low;
		s->high = is && x[k] > s->high ? x[k] : s->high;
		s->zero += is & (x[k] == 0);
		s->negative += is & (x[k] < 0);
	}
	s->sum += sum;
	s->squares += squares;
	s->n += n;
	return finite;
}

/* The mean is that of differences to the origin, so that it has all its digits where numbers are far from zero. */
static __device__ struct part part_of(const struct sums *s, double origin) {
	double n = s->n ? (double)s->n : 1;
	struct part p = {s->nan, s->pos_inf, s->neg_inf, s->zero, s->negative, s->n,
			 s->low, s->high, s->shift - origin + s->sum / n, s->squares - s->sum * (s->sum / n)};
	if (p.squares < 0)
		p.squares = 0;
	return p;
}

/* After Chan, Golub and LeVeque. */
static __device__ void merge(struct part *p, const struct part *o) {
	p->nan += o->nan;
	p->pos_inf += o->pos_inf;
	p->neg_inf += o->neg_inf;
	p->zero += o->zero;
	p->negative += o->negative;
	if (o->n == 0)
		return;
	if (p->n == 0) {
		p->mean = o->mean;
		p->squares = o->squares;
	} else {
		double share = (double)o->n / (double)(p->n + o->n), d = o->mean - p->mean;
		p->mean += d * share;
		p->squares += o->squares + d * d * (share * (double)p->n);
	}
	p->n += o->n;
	p->low = o->low < p->low ? o->low : p->low;
	p->high = o->high > p->high ? o->high : p->high;
}

/* ------------------------------------------------------------------------------------ histogram */

/* What threads need to know of the bins. */
struct bins {
	const double *edges;
	double low, high, scale, wrong;
	unsigned *counters;
	u64 *counts; /* below, bins, above */
	unsigned how, copies, copy;
	int n;
	unsigned below, above; /* that this thread has seen */
};

/* Counts a finite number. */
static __device__ void count(struct bins *b, double x) {
	int i;
	if (b->how == LOG_BINS) {
		i = (int)(bits_of(x) >> 52);
	} else if (x < b->low) {
		b->below++;
		return;
	} else if (x > b->high) {
		b->above++;
		return;
	} else {
		/* Added to so large a number, t is rounded to a whole one, which is in its last bits. */
		const double large = 0x1.8p52;
		double t = (x - b->low) * b->scale, whole = t + large, rest = t - (whole - large);
		i = (int)(unsigned)bits_of(whole) - (rest < 0);
		if (!(fabs(rest) > b->wrong)) { /* The product is rounded: what counts are the edges. */
			i = i < b->n ? i : b->n - 1;
			i -= i > 0 && x < b->edges[i];
			i += i + 1 < b->n && x >= b->edges[i + 1];
		}
	}
	if (b->copies)
		atomicAdd(&b->counters[(unsigned)i * b->copies + b->copy], 1u);
	else
		atomicAdd(&b->counts[1 + i], 1ull);
}

/* Sums up those of the numbers that are there, and counts them if there are bins. */
static __device__ void take(struct sums *s, struct bins *b, const double *x, unsigned there, double scale) {
	unsigned finite = add(s, x, there, scale);
	if (!b)
		return;
	UNROLL
	for (unsigned k = 0; k < EACH; k++) {
		if (finite >> k & 1)
			count(b, x[k]);
	}
}

/* -------------------------------------------------------------------------------------- kernels */

/* Of dense elements, stretches that begin where the GPU likes to read come first, and then the rest at both ends: head elements, and those
 * behind the last stretch. */
static __device__ const char *stretches_of(const struct job *j, const char *data, u64 stretch, u64 *head, u64 *stretches) {
	const char *begin = data + j->from.first;
	*head = *stretches = 0;
	if (!j->from.dense || j->run || j->subtract)
		return begin;
	*head = (16 - ((u64)begin & 15)) % 16 / j->from.size;
	if (*head < j->n)
		*stretches = (j->n - *head) / stretch;
	return begin + *head * j->from.size;
}

/* Adds up the copies of a block's counters. */
static __device__ void flush(const unsigned *counters, unsigned copies, unsigned bins, u64 *counts) {
	for (unsigned i = threadIdx.x; copies && i < bins; i += blockDim.x) {
		u64 count = 0;
		for (unsigned k = 0; k < copies; k++)
			count += counters[i * copies + k];
		if (count)
			atomicAdd(&counts[1 + i], count);
	}
}

/* Counts how often each pattern is there. */
ENTRY(8) ndbridge_stats_patterns(const char *data, const char *base, struct job *j) {
	DYNAMIC_SHARED(unsigned, counters);
	const u64 stretch = (u64)blockDim.x * EACH;
	const unsigned copies = j->copies, copy = threadIdx.x & (copies - 1);
	const int narrow = j->total >> 32 == 0;
	(void)base;
	for (unsigned i = threadIdx.x; i < j->bins * copies; i += blockDim.x)
		counters[i] = 0;
	__syncthreads();

	u64 head, stretches;
	const u64 *begin = (const u64 *)stretches_of(j, data, stretch, &head, &stretches);
	for (u64 round = blockIdx.x; round < stretches; round += gridDim.x) {
		u64 v = begin[round * blockDim.x + threadIdx.x];
		UNROLL
		for (unsigned k = 0; k < EACH; k++)
			atomicAdd(&counters[(v >> (8 * k) & 255) * copies + copy], 1u);
	}
	const u64 rest = j->n - stretches * stretch;
	for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < rest; at += (u64)gridDim.x * blockDim.x) {
		u64 hi, real = at + (at < head ? 0 : stretches * stretch);
		if (j->run)
			real = sampled(j, real);
		atomicAdd(&counters[element(&j->from, data, find(&j->from, real, narrow).where, &hi) * copies + copy], 1u);
	}
	__syncthreads();
	flush(counters, copies, j->bins, (u64 *)((char *)j + j->counts));
}

/* The sum of what the threads of a block have, and how many do. */
static __device__ double sum_of_block(struct part *parts, double x, unsigned *n) {
	struct part p = {0, 0, 0, 0, 0, *n, 0, 0, x, 0};
	for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
		if (threadIdx.x >= half && threadIdx.x < 2 * half)
			parts[threadIdx.x - half] = p;
		__syncthreads();
		if (threadIdx.x < half) {
			p.n += parts[threadIdx.x].n;
			p.mean += parts[threadIdx.x].mean;
		}
		__syncthreads();
	}
	if (threadIdx.x == 0)
		parts[0] = p;
	__syncthreads();
	x = parts[0].mean;
	*n = (unsigned)parts[0].n;
	__syncthreads();
	return x;
}

/* What both kernels below do. b is NULL if there are no bins. */
static INLINE __device__ void sum_up(const char *data, const char *base, struct job *j, struct bins *b) {
	__shared__ float values[256], base_values[256];
	__shared__ struct part parts[MAX_THREADS / 2];
	const u64 stretch = (u64)blockDim.x * EACH;
	const double scale = j->scale;
	const struct source from = {data, base, j, values, base_values};
	double x[EACH], gathered[EACH];
	for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
		values[i] = j->from.values[i];
		base_values[i] = j->base.values[i];
	}
	__syncthreads();

	struct sums s = {as_double(0x7ffull << 52), as_double(0xfffull << 52), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	const u64 mine = blockIdx.x * stretch, end = mine + blockDim.x;
	unsigned n = gather(&from, mine + threadIdx.x, end < j->n ? end : j->n, 0, 0, gathered) && gathered[0] - gathered[0] == 0;
	const double first = sum_of_block(parts, n ? gathered[0] * scale : 0, &n), origin = n ? first / n : 0;
	s.shift = origin;
	s.shifted = n != 0;

	u64 head, stretches;
	const char *begin = stretches_of(j, data, stretch, &head, &stretches);
	for (u64 round = blockIdx.x; round < stretches; round += gridDim.x) {
		dense(&j->from, x, begin + round * stretch * j->from.size, values);
		take(&s, b, x, (1u << EACH) - 1, scale);
	}
	/* Blocks that had a stretch less take what is left first. */
	const u64 rest = j->n - stretches * stretch, rounds = stretches + (rest + stretch - 1) / stretch;
	u64 round = stretches / gridDim.x * gridDim.x + blockIdx.x;
	if (round < stretches)
		round += gridDim.x;
	for (; round < rounds; round += gridDim.x) {
		unsigned there = gather(&from, (round - stretches) * stretch + threadIdx.x, rest, head, stretches * stretch, gathered);
		UNROLL
		for (unsigned k = 0; k < EACH; k++)
			x[k] = gathered[k];
		take(&s, b, x, there, scale);
	}

	struct part p = part_of(&s, origin);
	for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
		if (threadIdx.x >= half && threadIdx.x < 2 * half)
			parts[threadIdx.x - half] = p;
		__syncthreads();
		if (threadIdx.x < half)
			merge(&p, &parts[threadIdx.x]);
		__syncthreads();
	}
	p.mean += origin;
	if (threadIdx.x == 0)
		((struct part *)((char *)j + j->parts))[blockIdx.x] = p;
}

/* Sums up. */
ENTRY(2) ndbridge_stats_sum(const char *data, const char *base, struct job *j) {
	sum_up(data, base, j, NULL);
}

/* Sums up, and counts into bins. */
ENTRY(3) ndbridge_stats_bins(const char *data, const char *base, struct job *j) {
	DYNAMIC_SHARED(unsigned, counters);
	struct bins b = {
		(const double *)((const char *)j + j->edges), j->low, j->high, j->bin_scale, j->wrong, counters, (u64 *)((char *)j + j->counts),
		j->how, j->copies, threadIdx.x & (j->copies - 1), (int)j->bins, 0, 0,
	};
	for (unsigned i = threadIdx.x; i < j->bins * j->copies; i += blockDim.x)
		counters[i] = 0;
	__syncthreads();
	sum_up(data, base, j, &b);
	__syncthreads();
	if (b.below)
		atomicAdd(&b.counts[0], (u64)b.below);
	if (b.above)
		atomicAdd(&b.counts[1 + b.n], (u64)b.above);
	flush(counters, j->copies, j->bins, b.counts);
}
