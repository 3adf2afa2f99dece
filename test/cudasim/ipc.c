/* Handles of memory and events for other processes, which reach them through this process' descriptors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"

#define MAGIC 0x6e646273696d6970u

/* What the 64 bytes of a handle say. */
struct ticket {
	uint64_t magic;
	int32_t pid, fd;
	uint64_t inode;
	uint64_t offset, size;
	uint64_t id; /* so that handles of reused memory differ */
};

_Static_assert(sizeof(struct ticket) <= CU_IPC_HANDLE_SIZE, "fits into a handle");

static uint64_t inode_of(int fd) {
	struct stat status;
	return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static void issue(void *handle, struct ticket t) {
	t.magic = MAGIC;
	t.pid = getpid();
	t.inode = inode_of(t.fd);
	memset(handle, 0, CU_IPC_HANDLE_SIZE);
	memcpy(handle, &t, sizeof t);
}

static CUresult read_ticket(const void *handle, struct ticket *t) {
	memcpy(t, handle, sizeof *t);
	if (faults.no_ipc)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (t->magic != MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	return t->pid == getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/* The file that a ticket speaks of, or -1 if its process or the memory is gone. */
static int redeem(const struct ticket *t, const char *what, CUdevice *device, size_t *size) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", t->pid, t->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && (inode_of(fd) != t->inode || !memory_file_is(fd, what, device, size))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* ------------------------------------------------------------------------------------- memory */

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
	struct context *c;
	TRY(enter_context(&c));
	if (faults.no_ipc)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	struct block *b = block_find(pointer);
	if (!b || b->memory != DEVICE_MEMORY)
		return leave(CUDA_ERROR_INVALID_VALUE);
	issue(handle, (struct ticket){.fd = b->area->fd, .offset = b->base - b->area->base,
				      .size = b->size, .id = b->id});
	return leave(CUDA_SUCCESS);
}

static struct block *already_open(const struct context *c, uint64_t inode) {
	struct block *b;
	for (size_t i = 0; (b = block_at(i)); i++) {
		if (b->memory == IPC_MEMORY && b->context == c && b->origin == inode)
			return b;
	}
	return NULL;
}

/* One allocation that is open. */
struct opening {
	uint64_t offset, size;
	unsigned count;
	struct opening *next;
};

/*
 * Counts an opening. Where the peer has freed an allocation and made another one of a different size at its
 * place, while the first is still open here, the real driver answers so (seen on an H100, driver 580).
 */
static CUresult count_opening(struct block *b, const struct ticket *t) {
	for (struct opening *o = b->opened; o; o = o->next) {
		if (o->offset == t->offset && o->size == t->size) {
			o->count++;
			return CUDA_SUCCESS;
		}
		if (o->offset < t->offset + t->size && t->offset < o->offset + o->size)
			return CUDA_ERROR_ALREADY_MAPPED;
	}
	struct opening *o = must(malloc(sizeof *o));
	*o = (struct opening){t->offset, t->size, 1, b->opened};
	b->opened = o;
	return CUDA_SUCCESS;
}

/* Maps the whole segment: a handle shows the neighbours too. */
static CUresult map(struct context *c, const struct ticket *t, struct block **out) {
	CUdevice device;
	size_t size;
	int fd = redeem(t, "device", &device, &size);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct area *a = NULL;
	CUresult result = CUDA_SUCCESS;
	if (!device_valid(device))
		result = CUDA_ERROR_INVALID_DEVICE;
	else if (device != c->device && faults.no_peer)
		result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	else if (!(a = area_new(size, false)) || !area_back(a, 0, size, fd, 0))
		result = CUDA_ERROR_MAP_FAILED;
	if (result != CUDA_SUCCESS) {
		close(fd);
		if (a)
			area_free(a);
		return result;
	}
	a->fd = fd;
	*out = block_add((struct block){.base = a->base, .size = size, .memory = IPC_MEMORY, .area = a,
					.context = c, .device = device, .readable = true, .writable = true,
					.range_base = a->base, .range_size = size, .origin = t->inode});
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	struct ticket t;
	CUresult result = flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? read_ticket(&handle, &t) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = allocation_fault();
	if (result != CUDA_SUCCESS)
		return leave(result);
	struct block *b = already_open(c, t.inode);
	if (!b)
		result = map(c, &t, &b);
	if (result == CUDA_SUCCESS && t.offset >= b->size)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = count_opening(b, &t);
	if (result != CUDA_SUCCESS)
		return leave(result);
	*out = b->base + t.offset;
	return leave(CUDA_SUCCESS);
}

void ipc_release(struct block *b) {
	struct area *a = b->area;
	for (struct opening *o = b->opened, *next; o; o = next) {
		next = o->next;
		free(o);
	}
	block_remove(b);
	area_free(a);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find(pointer);
	if (!b || b->memory != IPC_MEMORY || b->context != c)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct opening **o = &b->opened;
	while (*o && (*o)->offset != pointer - b->base)
		o = &(*o)->next;
	if (!*o)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (--(*o)->count == 0) {
		struct opening *closed = *o;
		*o = closed->next;
		free(closed);
	}
	if (!b->opened) {
		ipc_release(b);
		settle_context(c); /* afterwards: what still uses the memory faults */
	}
	return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------------------------- events */

static CUresult share(struct event *e, int fd) {
	void *p = mmap(NULL, sizeof *e->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->shared = p;
	e->fd = fd;
	return CUDA_SUCCESS;
}

CUresult event_share(struct event *e) {
	int fd = memory_file("event", e->context->device, sizeof *e->shared);
	return fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : share(e, fd);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
	struct context *c;
	TRY(enter_context(&c));
	struct event *e = (struct event *)event;
	if (faults.no_ipc)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	if (!handle_is(EVENT, event) || !e->shared || e->peer)
		return leave(CUDA_ERROR_INVALID_HANDLE);
	issue(handle, (struct ticket){.fd = e->fd});
	return leave(CUDA_SUCCESS);
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
	struct context *c;
	TRY(enter_context(&c));
	struct ticket t;
	CUresult result = read_ticket(&handle, &t);
	if (result != CUDA_SUCCESS)
		return leave(result);
	CUdevice device;
	size_t size;
	int fd = redeem(&t, "event", &device, &size);
	if (fd < 0)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct event *e = event_new(c, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	e->peer = t.pid;
	result = share(e, fd);
	*out = (CUevent)e;
	return leave(result);
}
