/* What the stress tests of the shared heap share. They run with the library preloaded for every caller. */
#ifndef STRESS_H
#define STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ndheap.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define THRESHOLD (64 * KIB)

/* Fails the test, with the place and whatever else there is to say. */
#define CHECK(condition, ...)                                                                 \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "%s:%d: %s:", __FILE__, __LINE__, #condition);       \
			fprintf(stderr, " " __VA_ARGS__);                                     \
			fprintf(stderr, "\n");                                                \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

extern struct heap_functions {
	int (*pin)(const void *, struct ndheap_block *);
	int (*grant)(const void *);
	int (*unpin)(const void *, uint64_t);
	int (*repin)(const void *, uint64_t, struct ndheap_block *);
	int (*promote)(const void *);
	int (*promote_pinned)(const void *); /* with those beside it that are pinned */
	int (*promote_known)(const void *); /* the same for what may be gone: a library that was loaded late is not asked for it */
	size_t (*outside)(const void *, size_t, int);
	void (*copied)(const void *);
	void (*refuse)(const void *);
	uint64_t (*trim)(uint32_t);
	int (*stats)(struct ndheap_stats *);
} heap;

/* Has a library that was loaded late hear of what malloc gives from now on, as it does from the first promotion on. */
void hear(void);
/* Whether p lies in the heap and could be shared now. */
bool shared(const void *p);
/* Takes a pin back that was taken on the file in which p lies now. */
int unpin(const void *p);
struct ndheap_stats stats(void);
/* Fills memory with a pattern that depends on seed and place, and checks it. */
void fill(void *p, size_t size, uint32_t seed);
bool filled(const void *p, size_t size, uint32_t seed);
bool zero(const void *p, size_t size);
/* Hides a pointer from the optimiser, which knows too much about malloc. */
void *opaque(void *p);
/* fork, whose child does not outlive a test that failed. */
int split(void);
/* Forks a child that ends at once. */
void fork_once(void);
/* Waits for a child and answers with its exit status, or 128 + its signal. */
int exit_of(int pid);
/* Sets a limit, soft and hard. */
void limit(int resource, unsigned long value);
/* A clock. */
uint64_t now_ns(void);
/* How many descriptors are open. */
int open_files(void);
/* Bytes of this process that are in memory. */
size_t resident(void);
/* A small generator of numbers; the state must not be 0. */
uint32_t next_random(uint32_t *state);
/* Opens the file behind a pinned block, or answers -1. */
int open_file(const struct ndheap_block *b);
/* How much of it is in memory. */
size_t file_memory(const struct ndheap_block *b);
/* Maps the file behind a block as another process would, and answers where the block lies there. */
char *map_outside(const struct ndheap_block *b, int protection);

void test_entries(void);
void test_lookups(void);
void test_alignment(void);
void test_overflow(void);
void test_realloc(void);
void test_errno(void);
void test_wrong_free(const char *how);
void test_calloc(void);
void test_sparse(void);
void test_pins(void);
void test_wild(void);
void test_trim(void);
void test_keep(void);
void test_steady(void);
void test_growth(void);
void test_seals(void);
void test_threads(void);
void test_contention(void);
void test_fork(void);
void test_fork_threads(void);
void test_fork_pinned(void);
void test_fork_granted(void);
void test_fork_guarded(void);
void test_fork_child(void);
void test_fork_often(void);
void test_fork_generations(void);
void test_fork_closed(void);
void test_fork_warm(void);
void test_fork_dumped(void);
void test_fork_signals(void);
void test_fork_bare(void);
void test_promote(void);
void test_promote_not(void);
void test_promote_sparse(void);
void test_promote_writers(void);
void test_promote_input(void);
void test_promote_refused(void);
void test_promote_often(void);
void test_promote_child(void);
void test_promote_repin(void);
void test_promote_beside(void);
void test_promote_elsewhere(void);
void test_promote_together(void);
void test_promote_pinned(void);
void test_promote_signals(void);
void test_promote_limit(void);
void test_promote_own_limit(void);
void test_promote_mappings(void);
void test_outside(void);
void test_outside_resize(void);
void test_outside_refused(void);
void test_outside_mappings(void);
void test_outside_child(void);
void test_outside_many(void);
void test_outside_hammer(void);
void test_outside_looks(void);
void test_outside_beside(void);
void test_outside_changes(void);
void test_outside_gone(void);
void test_outside_gone_early(void);
void test_outside_left(void);
void test_outside_larger(void);
void test_outside_smaller(void);
void test_outside_going(void);
void test_promote_lowest(void);
void late_begin(void);
void test_late_links(void);
void test_late_small(void);
void test_late_undone(void);
void test_late_library(void);
void test_late_loading(void);
void test_late_advice(void);
void test_late_handlers(void);
void test_late_awaiting(void);
void test_exec(void);
void test_after_exec(void);
void test_few_descriptors(void);
void test_large_pools(void);
void test_large_pools_promoted(void);
void test_select(void);
void test_closing(void);
void test_replaced(void);
void test_mapped_over(void);
void test_advice(void);
void test_advice_changed(void);
void test_guarded(void);
void test_protected(void);
void test_overcommit(void);
void test_file_size(void);
void test_address_space(void);
void test_data_limit(void);
void test_own_address_space(void);
void test_own_data_limit(void);
void test_child_limit(void);
void test_denied(const char *what);

#endif
