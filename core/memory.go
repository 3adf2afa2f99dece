package core

import "context"

// Memory is one stretch of memory that is visible in this process. A [View] is a layout over it. Packages that
// map memory implement it; users of views do not meet it.
//
// Bytes, Addr and Size return the same until Close and may be called concurrently. Nobody may touch the memory
// after Close.
type Memory interface {
	// Bytes returns the memory as the host sees it, or nil if the host cannot read it. Writing to it faults
	// unless it is mapped writable.
	Bytes() []byte
	// Addr returns the address of the first byte, on the host or on the device whose memory it is.
	Addr() uintptr
	// Size returns the number of bytes.
	Size() int64
	// Close gives the memory back. The View that owns a Memory calls it exactly once.
	Close() error
}

// Fenced is a [Memory] that may not be ready yet: [View.Wait], [Copy], [CopyBytes] and [Put] wait for it.
type Fenced interface {
	Memory
	// Ready returns nil when the memory may be touched, the error of ctx when that ends, or the reason why the
	// memory will never be ready.
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
