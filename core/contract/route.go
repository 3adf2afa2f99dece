package contract

import "github.com/ndbridge/ndbridge/core"

// The routes: those of host memory, and then those of GPU memory, in the order in which they are tried.
const (
	RouteEmpty      core.Route = "empty"       // the array has no elements, so there is no memory to share
	RouteSharedHeap core.Route = "shared-heap" // the array was allocated in the shared heap; no copy
	RouteMappedFile core.Route = "mapped-file" // the array lies in a mapped file, whose descriptor was passed; no copy
	RouteStaged     core.Route = "staged"      // the array was copied once into shared host memory
	RouteCUDAIPC    core.Route = "cuda-ipc"    // the array's allocation was opened by its legacy IPC handle; no copy
	RouteCUDAVMM    core.Route = "cuda-vmm"    // the array's physical memory was mapped by its descriptors; no copy
	RouteCUDAPool   core.Route = "cuda-pool"   // the array's allocation was opened through its memory pool; no copy
	RouteCUDAStaged core.Route = "cuda-staged" // the array was copied once into other memory of its GPU
)

// Copied reports whether memory that came by route r is a copy of the program's memory.
func Copied(r core.Route) bool { return r == RouteStaged || r == RouteCUDAStaged }

// The reasons for a copy, or for a refusal to copy.
const (
	ReasonBelowThreshold core.Reason = "below-threshold"  // smaller than the shared heap's threshold
	ReasonOutsideHeap    core.Reason = "outside-heap"     // allocated by something that does not use the shared heap, or mapped over by the program
	ReasonHeapOff        core.Reason = "heap-off"         // the program runs without the shared heap
	ReasonFrozen         core.Reason = "frozen-by-fork"   // a fork has made the block's pages private, and they cannot be made shareable again now
	ReasonPrivateMapping core.Reason = "private-mapping"  // a private file mapping: its changes are not in the file
	ReasonFileGone       core.Reason = "file-gone"        // the mapped file cannot be opened any more
	ReasonConverted      core.Reason = "converted"        // the framework had to make a new array (a quirk says why)
	ReasonNotExportable  core.Reason = "not-exportable"   // the CUDA driver has no handle for memory of this kind
	ReasonHostWithoutGPU core.Reason = "host-without-gpu" // the host cannot reach the GPU that the array is on
	ReasonMayBeDonated   core.Reason = "may-be-donated"   // the program may donate the array, which fails while somebody holds its memory
	ReasonMappedFile     core.Reason = "mapped-file"      // the mapped file can shrink; the host does not map such files
)
