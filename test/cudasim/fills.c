/* cuMemset in its many widths. */
#include "sim.h"

struct fill {
	struct operation operation;
	CUdeviceptr to;
	size_t pitch, width, height; /* width: elements */
	unsigned value, element;
};

static CUresult run_fill(struct operation *o) {
	struct fill *f = (struct fill *)o;
	struct area *area;
	lock();
	char *p = pin(f->to, (f->height - 1) * f->pitch + f->width * f->element, true, &area);
	unlock();
	if (!p)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t y = 0; y < f->height; y++, p += f->pitch) {
		for (size_t x = 0; x < f->width; x++) {
			if (f->element == 1)
				((uint8_t *)p)[x] = (uint8_t)f->value;
			else if (f->element == 2)
				((uint16_t *)p)[x] = (uint16_t)f->value;
			else
				((uint32_t *)p)[x] = f->value;
		}
	}
	lock();
	unpin(area);
	unlock();
	return CUDA_SUCCESS;
}

static CUresult fill(struct fill shape, CUstream stream) {
	struct context *c;
	struct stream *s;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	if (result != CUDA_SUCCESS || !shape.width || !shape.height)
		return leave(result);
	struct block *b = block_find(shape.to);
	if (!b || !b->writable || shape.to % shape.element)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct fill *f = operation_new(sizeof *f, run_fill);
	shape.operation = f->operation;
	*f = shape;
	return leave(stream_queue(s, &f->operation));
}

static CUresult fill_line(CUdeviceptr to, unsigned value, unsigned element, size_t count, CUstream stream) {
	return fill((struct fill){.to = to, .pitch = count * element, .width = count, .height = 1, .value = value,
				  .element = element}, stream);
}

static CUresult fill_rows(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
			  size_t height, CUstream stream) {
	return fill((struct fill){.to = to, .pitch = pitch, .width = width, .height = height, .value = value,
				  .element = element}, stream);
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
	return fill_line(to, value, 1, count, NULL);
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
	return fill_line(to, value, 2, count, NULL);
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
	return fill_line(to, value, 4, count, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
	return fill_line(to, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
	return fill_line(to, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
	return fill_line(to, value, 4, count, stream);
}

CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
	return fill_rows(to, pitch, value, 1, width, height, NULL);
}

CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
	return fill_rows(to, pitch, value, 2, width, height, NULL);
}

CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
	return fill_rows(to, pitch, value, 4, width, height, NULL);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
			   CUstream stream) {
	return fill_rows(to, pitch, value, 1, width, height, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
			    CUstream stream) {
	return fill_rows(to, pitch, value, 2, width, height, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
			    CUstream stream) {
	return fill_rows(to, pitch, value, 4, width, height, stream);
}
