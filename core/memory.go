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
	// Fence is what must have happened before the memory may be touched. It may change when the memory is
	// looked at anew, to what has been queued since.
	Fence() Fence
	// Ready returns when the memory may be touched: nil, the error of ctx, or why that will never be.
	Ready(ctx context.Context) error
}
