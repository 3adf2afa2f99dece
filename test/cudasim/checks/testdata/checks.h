/* What the checks of the simulated driver share. Each check is a process of its own. */
#ifndef CHECKS_H
#define CHECKS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cudasim.h"

#define CHECK(condition)                                                                    \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

/* The call must end so. */
#define EXPECT(wanted, call)                                                                          \
	do {                                                                                          \
		CUresult got_ = (call);                                                               \
		if (got_ != (wanted)) {                                                               \
			fprintf(stderr, "%s:%d: %s: got %d, want %d\n", __FILE__, __LINE__, #call, got_, \
				(int)(wanted));                                                       \
			_exit(1);                                                                     \
		}                                                                                     \
	} while (0)
#define OK(call) EXPECT(CUDA_SUCCESS, call)

enum { COUNT = 1024 }; /* words of the memory that most checks use */
#define SIZE ((size_t)COUNT * 4)

CUresult cuCtxRecordEvent(CUcontext context, CUevent event); /* newer than the header */

CUcontext use_primary(void); /* initialises, and makes the first device's primary context current */
CUcontext use_primary_slowly(void); /* where each operation takes so long that a check is always faster */
CUdeviceptr memory_of(uint32_t value);
uint32_t first_word(CUdeviceptr p); /* as a copy on a stream of its own sees it: waits for nobody */
bool all_words(CUdeviceptr p, uint32_t value);
CUstream new_stream(void); /* that does not wait for the default stream */

/* Runs other in a child, which must not have been preceded by cuInit; the descriptor leads to it. */
int start_peer(void (*other)(int socket));
void end_peer(void);      /* waits for it; it must have succeeded */
int kill_peer(void);
int wait_for_peer(void);  /* its status, as of waitpid */
void tell(int socket, const void *data, size_t size);
void hear(int socket, void *data, size_t size);
void send_descriptor(int socket, int fd);
int receive_descriptor(int socket);
int count_descriptors(void);

/* The checks, by file. */
#define CHECKS(each)                                                                                   \
	each(late) each(race) each(default_stream) each(events) each(context_event) each(words) each(capture) each(full_queues) each(moved) \
	each(callbacks) each(no_context) each(contexts) each(fork_child) each(attributes) each(neighbours) \
	each(untouchable) each(registration) each(leaks) each(ipc) each(orphan) each(vmm) each(pool)   \
	each(word_of_peer) each(kernels) each(kernel_faults) each(out_of_memory) each(lost)            \
	each(refusals) each(entry_points) each(devices) each(frees) each(pool_frees)
#define DECLARE(name) void check_##name(void);
CHECKS(DECLARE)

#endif
