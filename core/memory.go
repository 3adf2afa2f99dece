package core

import "context"

// Memory is one stretch of memory that is visible in this process: what a [View] stands on. Whoever
// maps memory implements it; users of views do not meet it.
//
// Bytes, Addr and Size answer the same until Close and may be called concurrently. After Close the
// memory must not be touched any more.
type Memory interface {
	// Bytes is the memory as the host sees it, or nil if the host cannot read it. Writing to it faults
	// unless it was mapped writable.
	Bytes() []byte
	// Addr is the address of the first byte: of the host, or of the device whose memory it is.
	Addr() uintptr
	// Size is the number of bytes.
	Size() int64
	// Close gives the memory back. The view that owns a Memory calls it exactly once.
	Close() error
}

// Fenced is a [Memory] that may have to be waited for before it is touched.
type Fenced interface {
	Memory
	// Ready returns when the memory may be touched: nil, the error of ctx, or why that will never be.
	Ready(ctx context.Context) error
}

// Copier is a [Memory] that copies its own elements because the CPU cannot read them: [Copy], [CopyBytes] and
// [Put] use it. They call it while the memory may be touched and cannot be closed.
type Copier interface {
	Memory
	// CopyOut copies the elements that l describes, densely and in row-major order, to dst, which has
	// l.NBytes bytes. The offset of l is relative to the memory.
	CopyOut(ctx context.Context, dst []byte, l Layout) error
	// CopyIn copies src, which has l.NBytes bytes, over the elements that l describes.
	CopyIn(ctx context.Context, l Layout, src []byte) error
}
