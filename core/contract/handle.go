package contract

// Handle says how a lease's memory is reached. It is a [Segment], a [CUDAIPC], a [CUDAVMM] or a [CUDAPool], or nil for
// an array without elements. The interface is sealed, so a type switch over these is exhaustive.
type Handle interface {
	// Extent returns the size of the memory in bytes. The layout's offset counts from its first byte.
	Extent() int64
	isHandle()
}

// SegmentID names a segment within one producer. A producer never uses an ID twice.
type SegmentID uint64

// Segment is host memory behind a file descriptor, which [Producer.Descriptor] lends. One segment may hold the memory
// of many leases.
type Segment struct {
	ID   SegmentID
	Size int64 // bytes of the file that may be mapped, from its start
	// Sealed says that the file is a memfd that can no longer shrink, so that a mapping of it never faults. The
	// host checks it. If the owner of a file that is not sealed truncates it, touching a mapping of it faults
	// (SIGBUS).
	Sealed bool
}

// CUDAIPC is memory of a GPU behind a legacy IPC handle, which the driver opens in another process of the same machine.
// That process then sees the whole block from which the driver took the allocation, neighbours included: at least
// 2 MiB on today's drivers.
type CUDAIPC struct {
	ID   SegmentID
	Size int64 // bytes of the allocation
	GPU  UUID
	Mem  [64]byte // a CUipcMemHandle
}

// CUDAVMM is memory of a GPU that consists of physical allocations side by side (the driver's virtual memory
// management). Each has a file descriptor, which [Producer.Descriptor] lends.
type CUDAVMM struct {
	GPU    UUID
	Chunks []CUDAChunk // in the order of their addresses; at least one
}

// CUDAChunk is one physical allocation of a [CUDAVMM].
type CUDAChunk struct {
	ID   SegmentID
	Size int64 // bytes
}

// CUDAPool is one allocation from a memory pool of a GPU. [Producer.Descriptor] lends the pool's file descriptor;
// Pointer leads to the allocation in it.
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

// Fence says what must have happened before anybody touches memory. It is a [Ready] or a [CUDAWord]; the interface is
// sealed.
type Fence interface{ isFence() }

// Ready is the fence of memory that anybody may touch at once.
type Ready struct{}

// CUDAWord is a fence between streams of two processes: a 32-bit word in host memory that both have registered with
// the CUDA driver. A stream of the program writes Value to it after the work that was queued before
// (cuStreamWriteValue32). A stream of the host waits for it (cuStreamWaitValue32), or the CPU looks. The memory may be
// touched once the word, as a number that wraps around, has reached Value.
//
// The four bytes behind the word are zero, or the driver's error if the work failed. In that case the program's CPU
// writes the word, so that nobody waits for ever.
//
// [CUDAReadBegun] and [CUDAReadDone] bytes behind each multiple of [CUDAWordStride] are two words for the way back: in the
// first, the host's CPU counts the reads of the program's memory that it begins, and in the second one of its streams, or
// its CPU, writes that count when they are done. A stream of the program can wait for that.
type CUDAWord struct {
	Page   SegmentID // the memory that the word lies in: a sealed memfd, which [Producer.Descriptor] lends
	Size   int64     // bytes of the page
	Offset int64     // of the word in the page; a multiple of [CUDAWordStride]
	Value  uint32
}

// Where words lie in a page.
const (
	CUDAWordStride = 64
	CUDAReadBegun  = 8
	CUDAReadDone   = 12
)

func (Ready) isFence()    {}
func (CUDAWord) isFence() {}
