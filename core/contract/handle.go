package contract

// Handle is how a lease's memory is reached: a sealed sum, so that a type switch over it is
// exhaustive. It is a [Segment], a [CUDAIPC], a [CUDAVMM] or a [CUDAPool], or nil for an array without
// elements.
type Handle interface {
	// Extent is the number of bytes that the layout's offset counts in.
	Extent() int64
	isHandle()
}

// SegmentID names a segment within one producer. It is never used twice.
type SegmentID uint64

// Segment is host memory behind a file descriptor, which [Producer.Descriptor] lends. One segment
// may hold the memory of many leases.
type Segment struct {
	ID   SegmentID
	Size int64 // bytes of the file that may be mapped, from its start
	// Sealed says that the file is a memfd that can no longer shrink, so that a mapping of it never
	// faults. The host checks it. A file that is not sealed faults (SIGBUS) if its owner truncates it,
	// as any mapping of that file would.
	Sealed bool
}

// CUDAIPC is memory of a GPU behind a legacy IPC handle, which the driver opens in another process of
// the same machine. Opening it shows that process the whole block that the driver took the allocation
// from, neighbours included: on today's drivers 2 MiB at least.
type CUDAIPC struct {
	ID   SegmentID
	Size int64 // bytes of the allocation
	GPU  UUID
	Mem  [64]byte // a CUipcMemHandle
}

// CUDAVMM is memory of a GPU that lies in physical allocations side by side (the driver's virtual
// memory management). Each is a file descriptor, which [Producer.Descriptor] lends.
type CUDAVMM struct {
	GPU    UUID
	Chunks []CUDAChunk // in the order of their addresses; at least one
}

// CUDAChunk is one physical allocation of a [CUDAVMM].
type CUDAChunk struct {
	ID   SegmentID
	Size int64 // bytes
}

// CUDAPool is one allocation from a memory pool of a GPU. The pool's file descriptor is lent by
// [Producer.Descriptor]; Pointer then leads to the allocation.
type CUDAPool struct {
	ID      SegmentID
	Size    int64 // bytes of the allocation
	GPU     UUID
	Pool    SegmentID // the pool, which may hold many allocations
	Pointer [64]byte  // a CUmemPoolPtrExportData
}

// Extent implements [Handle].
func (s Segment) Extent() int64 { return s.Size }

// Extent implements [Handle].
func (c CUDAIPC) Extent() int64 { return c.Size }

// Extent implements [Handle].
func (c CUDAVMM) Extent() int64 {
	var sum int64
	for _, chunk := range c.Chunks {
		sum += chunk.Size
	}
	return sum
}

// Extent implements [Handle].
func (c CUDAPool) Extent() int64 { return c.Size }

func (Segment) isHandle()  {}
func (CUDAIPC) isHandle()  {}
func (CUDAVMM) isHandle()  {}
func (CUDAPool) isHandle() {}

// Fence is what must have happened before memory may be touched: a sealed sum of [Ready] and
// [CUDAWord].
type Fence interface{ isFence() }

// Ready is the fence of memory that may be touched at once.
type Ready struct{}

// CUDAWord is a fence between streams of two processes: a 32-bit word in host memory that both have
// given to the CUDA driver. A stream of the program writes Value to it when the work before is done
// (cuStreamWriteValue32); a stream of the host waits for it (cuStreamWaitValue32), or the CPU looks.
// The memory may be touched once the word, taken as a number that wraps around, has reached Value. The
// four bytes behind the word are zero, or the driver's error that has kept the work from being done: then
// the program's CPU has written the word, so that nobody waits for ever.
type CUDAWord struct {
	Page   SegmentID // the memory that the word lies in: a sealed memfd, which [Producer.Descriptor] lends
	Size   int64     // bytes of the page
	Offset int64     // of the word in the page; a multiple of 4
	Value  uint32
}

func (Ready) isFence()    {}
func (CUDAWord) isFence() {}
