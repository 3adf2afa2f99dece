/* Copies and fills. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* One end of a copy: rows of bytes in slices. */
struct end {
	uintptr_t address;
	bool host; /* may be memory that the driver does not know */
	size_t pitch, slice;
};

struct copy {
	struct operation operation;
	struct end to, from;
	size_t width, height, depth;
	char *staged;
};

static size_t span(const struct copy *c, const struct end *e) {
	return (c->depth - 1) * e->slice + (c->height - 1) * e->pitch + c->width;
}

static char *open_end(const struct copy *c, const struct end *e, bool write, struct area **area) {
	*area = NULL;
	lock();
	char *p = pin(e->address, span(c, e), write, area);
	if (!p && e->host && !block_find(e->address))
		p = (char *)e->address;
	unlock();
	return p;
}

static void close_end(struct area *area) {
	lock();
	if (area)
		unpin(area);
	unlock();
}

static void move(const struct copy *c, char *to, const char *from) {
	char *read = read_slowly(&c->operation, from, span(c, &c->from), 0);
	for (size_t z = 0; z < c->depth; z++) {
		for (size_t y = 0; y < c->height; y++)
			memcpy(to + z * c->to.slice + y * c->to.pitch, read + z * c->from.slice + y * c->from.pitch,
			       c->width);
	}
	free(read);
}

static CUresult run_copy(struct operation *o) {
	struct copy *c = (struct copy *)o;
	struct area *to_area = NULL, *from_area = NULL;
	char *from = c->staged ? c->staged : open_end(c, &c->from, false, &from_area);
	char *to = open_end(c, &c->to, true, &to_area);
	if (from && to)
		move(c, to, from);
	close_end(from_area);
	close_end(to_area);
	return from && to ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void drop_copy(struct operation *o) {
	free(((struct copy *)o)->staged);
}

static bool known(const struct end *e) {
	return e->host || block_find(e->address);
}

static bool pageable(const struct end *e) {
	return e->host && !block_find(e->address);
}

enum wait { WAIT, DO_NOT_WAIT };

/*
 * As the real driver: an asynchronous copy from pageable memory has read it when the call is back, one
 * to pageable memory is done then, and copies within the device are always asynchronous.
 */
static CUresult copy(struct copy shape, CUstream stream, enum wait wait) {
	struct context *context;
	struct stream *s;
	TRY(enter_context(&context));
	CUresult result = stream_of(context, stream, &s);
	if (result != CUDA_SUCCESS || !shape.width || !shape.height || !shape.depth)
		return leave(result);
	if (!known(&shape.to) || !known(&shape.from))
		return leave(CUDA_ERROR_INVALID_VALUE);
	bool finish = wait == WAIT || pageable(&shape.to);
	if (wait == DO_NOT_WAIT && pageable(&shape.from)) {
		size_t size = span(&shape, &shape.from);
		shape.staged = memcpy(must(malloc(size)), (const void *)shape.from.address, size);
	}
	struct copy *c = operation_new(sizeof *c, run_copy);
	shape.operation = c->operation;
	*c = shape;
	c->operation.drop = drop_copy;
	c->operation.prompt = wait == WAIT;
	c->operation.reads = true;
	result = stream_queue(s, &c->operation);
	if (result == CUDA_SUCCESS && finish && !s->capture)
		result = stream_finish(s);
	return leave(result);
}

static struct copy line(uintptr_t to, bool to_host, uintptr_t from, bool from_host, size_t size) {
	return (struct copy){.to = {to, to_host, size, size}, .from = {from, from_host, size, size},
			     .width = size, .height = 1, .depth = 1};
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
	return copy(line(to, true, from, true, size), NULL, WAIT);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
	return copy(line(to, true, from, true, size), stream, DO_NOT_WAIT);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
	return copy(line(to, false, (uintptr_t)from, true, size), NULL, WAIT);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
	return copy(line(to, false, (uintptr_t)from, true, size), stream, DO_NOT_WAIT);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
	return copy(line((uintptr_t)to, true, from, false, size), NULL, WAIT);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
	return copy(line((uintptr_t)to, true, from, false, size), stream, DO_NOT_WAIT);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
	return copy(line(to, false, from, false, size), NULL, DO_NOT_WAIT);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
	return copy(line(to, false, from, false, size), stream, DO_NOT_WAIT);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
	(void)to_context;
	(void)from_context;
	return cuMemcpyDtoD(to, from, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
			   size_t size, CUstream stream) {
	(void)to_context;
	(void)from_context;
	return cuMemcpyDtoDAsync(to, from, size, stream);
}

/* ------------------------------------------------------------------------------------- shapes */

static bool end_of(struct end *e, CUmemorytype type, const void *host, CUdeviceptr device, size_t offset,
		   size_t pitch, size_t height) {
	if (type == CU_MEMORYTYPE_ARRAY)
		return false;
	e->host = type != CU_MEMORYTYPE_DEVICE;
	e->address = (type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device) + offset;
	e->pitch = pitch;
	e->slice = pitch * height;
	return true;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, enum wait wait) {
	struct copy c = {.width = p->WidthInBytes, .height = p->Height, .depth = 1};
	size_t to_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes;
	size_t from_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes;
	if (!end_of(&c.to, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstY * to_pitch + p->dstXInBytes,
		    to_pitch, 0) ||
	    !end_of(&c.from, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcY * from_pitch + p->srcXInBytes,
		    from_pitch, 0))
		return CUDA_ERROR_NOT_SUPPORTED;
	return copy(c, stream, wait);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *p) {
	return copy_2d(p, NULL, WAIT);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *p) {
	return copy_2d(p, NULL, WAIT);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *p, CUstream stream) {
	return copy_2d(p, stream, DO_NOT_WAIT);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, enum wait wait) {
	struct copy c = {.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	size_t to_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes;
	size_t from_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes;
	size_t to_height = p->dstHeight ? p->dstHeight : p->Height;
	size_t from_height = p->srcHeight ? p->srcHeight : p->Height;
	if (!end_of(&c.to, p->dstMemoryType, p->dstHost, p->dstDevice,
		    (p->dstZ * to_height + p->dstY) * to_pitch + p->dstXInBytes, to_pitch, to_height) ||
	    !end_of(&c.from, p->srcMemoryType, p->srcHost, p->srcDevice,
		    (p->srcZ * from_height + p->srcY) * from_pitch + p->srcXInBytes, from_pitch, from_height))
		return CUDA_ERROR_NOT_SUPPORTED;
	return copy(c, stream, wait);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *p) {
	return copy_3d(p, NULL, WAIT);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *p, CUstream stream) {
	return copy_3d(p, stream, DO_NOT_WAIT);
}
