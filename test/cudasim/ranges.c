/* Areas of addresses, and the blocks in them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

/* --------------------------------------------------------------------------------------- areas */

/* Addresses that nothing else gets and nobody may touch, at a multiple of SEGMENT_SIZE. */
static char *reserve(size_t size) {
	size_t whole = size + SEGMENT_SIZE;
	char *p = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *start = (char *)round_up((uintptr_t)p, SEGMENT_SIZE);
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (p + whole > start + size)
		munmap(start + size, (size_t)(p + whole - (start + size)));
	return start;
}

struct area *area_new(size_t size, bool readable_here) {
	char *base = reserve(size), *alias = base && !readable_here ? reserve(size) : base;
	if (!alias) {
		if (base)
			munmap(base, size);
		return NULL;
	}
	struct area *a = must(calloc(1, sizeof *a));
	a->base = (uintptr_t)base;
	a->size = size;
	a->alias = alias;
	a->fd = -1;
	return a;
}

bool area_back(struct area *a, size_t offset, size_t size, int fd, off_t at) {
	int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	return mmap(a->alias + offset, size, PROT_READ | PROT_WRITE, flags, fd, at) != MAP_FAILED;
}

static void wait_until_idle(struct area *a) {
	while (a->busy)
		wait_for_change();
}

void area_unback(struct area *a, size_t offset, size_t size) {
	wait_until_idle(a);
	mmap(a->alias + offset, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void area_free(struct area *a) {
	wait_until_idle(a);
	size_t into = (uintptr_t)a->alias % (size_t)sysconf(_SC_PAGESIZE);
	if (a->alias != (char *)a->base)
		munmap(a->alias - into, a->size + into);
	if (!a->foreign)
		munmap((char *)a->base, a->size);
	if (a->fd >= 0)
		close(a->fd);
	free(a->taken);
	free(a);
}

/* -------------------------------------------------------------------------------------- blocks */

static struct block **blocks; /* by address */
static size_t block_count, block_room;

uint64_t next_id(void) {
	static uint64_t id;
	return ++id;
}

/* The first block that ends after address. */
static size_t block_index(uintptr_t address) {
	size_t low = 0, high = block_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (blocks[middle]->base + blocks[middle]->size > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct block *block_at(size_t index) {
	return index < block_count ? blocks[index] : NULL;
}

struct block *block_find(uintptr_t address) {
	struct block *b = block_at(block_index(address));
	return b && b->base <= address ? b : NULL;
}

bool blocks_overlap(uintptr_t base, size_t size) {
	struct block *b = block_at(block_index(base));
	return b && b->base < base + size;
}

struct block *block_add(struct block b) {
	if (block_count == block_room) {
		block_room = block_room ? 2 * block_room : 64;
		blocks = must(realloc(blocks, block_room * sizeof(struct block *)));
	}
	struct block *added = must(malloc(sizeof *added));
	*added = b;
	added->id = next_id();
	size_t i = block_index(b.base);
	memmove(&blocks[i + 1], &blocks[i], (block_count - i) * sizeof(struct block *));
	blocks[i] = added;
	block_count++;
	return added;
}

void block_remove(struct block *b) {
	size_t i = block_index(b->base);
	memmove(&blocks[i], &blocks[i + 1], (block_count - i - 1) * sizeof(struct block *));
	block_count--;
	free(b);
}

CUresult block_free(struct block *b) {
	switch (b->memory) {
	case DEVICE_MEMORY:
	case PINNED:
	case MANAGED:
		segment_release(b);
		return CUDA_SUCCESS;
	case REGISTERED:
		registered_release(b);
		return CUDA_SUCCESS;
	case IPC_MEMORY:
		ipc_release(b);
		return CUDA_SUCCESS;
	case POOL_MEMORY:
		pool_release(b);
		return CUDA_SUCCESS;
	case VMM_MEMORY:
		break;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

void context_free_memory(struct context *c) {
	/* Releasing may give up the lock, and others then change the table: begin anew each time. */
	for (size_t i = 0; i < block_count;) {
		if (blocks[i]->context == c && block_free(blocks[i]) == CUDA_SUCCESS)
			i = 0;
		else
			i++;
	}
}

/* ------------------------------------------------------------------------------------- pinning */

char *pin(uintptr_t address, size_t size, bool write, struct area **area) {
	struct block *first = block_find(address);
	if (!first)
		return NULL;
	for (uintptr_t at = address; at < address + size;) {
		struct block *b = block_find(at); /* mappings of one reservation may follow each other */
		if (!b || b->area != first->area || !b->readable || (write && !b->writable))
			return NULL;
		if (b->memory != VMM_MEMORY && b != first)
			return NULL;
		at = b->base + b->size;
	}
	*area = first->area;
	(*area)->busy++;
	return first->area->alias + (address - first->area->base);
}

void unpin(struct area *area) {
	if (--area->busy == 0)
		pthread_cond_broadcast(&sim_changed);
}

/* --------------------------------------------------------------------------------------- files */

int memory_file(const char *what, CUdevice device, size_t size) {
	char name[64];
	snprintf(name, sizeof name, "cudasim-%s-%d", what, device_number(device));
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

bool memory_file_is(int fd, const char *what, CUdevice *device, size_t *size) {
	char link[64], name[128], pattern[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, name, sizeof name - 1);
	struct stat status;
	if (n < 0 || fstat(fd, &status) != 0)
		return false;
	name[n] = 0;
	snprintf(pattern, sizeof pattern, "/memfd:cudasim-%s-", what);
	size_t length = strlen(pattern);
	if (strncmp(name, pattern, length) != 0)
		return false;
	*device = device_of_number(atoi(name + length));
	*size = (size_t)status.st_size;
	return true;
}
