package core

// Route says how an array's memory reached this process.
type Route uint8

// The routes: those of host memory, and then those of GPU memory, in the order in which they are tried.
const (
	RouteNone       Route = iota // unknown: the zero value, never part of a valid lease
	RouteEmpty                   // the array has no elements, so there is no memory to share
	RouteSharedHeap              // the array was allocated in the shared heap; no copy
	RouteMappedFile              // the array lies in a mapped file, whose descriptor was passed; no copy
	RouteStaged                  // the array was copied once into shared host memory; Reason says why
	RouteCUDAIPC                 // the array's allocation was opened by its legacy IPC handle; no copy
	RouteCUDAVMM                 // the array's physical memory was mapped by its descriptors; no copy
	RouteCUDAPool                // the array's allocation was opened through its memory pool; no copy
	RouteCUDAStaged              // the array was copied once into other memory of its GPU; Reason says why
)

var routeTexts = []string{
	RouteNone: "none", RouteEmpty: "empty", RouteSharedHeap: "shared-heap",
	RouteMappedFile: "mapped-file", RouteStaged: "staged", RouteCUDAIPC: "cuda-ipc",
	RouteCUDAVMM: "cuda-vmm", RouteCUDAPool: "cuda-pool", RouteCUDAStaged: "cuda-staged",
}

// Copied reports whether memory that came by this route is a copy of the program's own.
func (r Route) Copied() bool { return r == RouteStaged || r == RouteCUDAStaged }

// String gives "none", "empty", "shared-heap", "mapped-file", "staged", "cuda-ipc", "cuda-vmm",
// "cuda-pool" or "cuda-staged".
func (r Route) String() string { return enumText("route", routeTexts, int(r)) }

// MarshalText gives the text of String, or an error for an unknown route.
func (r Route) MarshalText() ([]byte, error) { return marshalEnum("route", routeTexts, int(r)) }

// UnmarshalText reads what MarshalText gives.
func (r *Route) UnmarshalText(text []byte) error {
	i, err := unmarshalEnum("route", routeTexts, text)
	if err == nil {
		*r = Route(i)
	}
	return err
}

// Reason says why memory was copied, or could not be shared.
type Reason uint8

// The reasons. ReasonNone stands with every route that does not copy.
const (
	ReasonNone           Reason = iota
	ReasonBelowThreshold        // smaller than the shared heap's threshold
	ReasonOutsideHeap           // allocated by something that does not use the shared heap, or mapped over by the program
	ReasonHeapOff               // the program runs without the shared heap
	ReasonFrozen                // the block lived through a fork, so its pages are private now
	ReasonPrivateMapping        // a private file mapping: its changes are not in the file
	ReasonFileGone              // the mapped file cannot be opened any more
	ReasonConverted             // the framework had to make a new array (a quirk says why)
	ReasonNotExportable         // the CUDA driver has no handle for memory of this kind
	ReasonHostWithoutGPU        // the host cannot reach the GPU that the array is on
	ReasonMappedFile            // the mapped file can shrink, and the host is configured not to map such files
)

var reasonTexts = []string{
	ReasonNone: "none", ReasonBelowThreshold: "below-threshold", ReasonOutsideHeap: "outside-heap", ReasonHeapOff: "heap-off",
	ReasonFrozen: "frozen-by-fork", ReasonPrivateMapping: "private-mapping", ReasonFileGone: "file-gone", ReasonConverted: "converted",
	ReasonNotExportable: "not-exportable", ReasonHostWithoutGPU: "host-without-gpu", ReasonMappedFile: "mapped-file",
}

// String gives "none", "below-threshold", "outside-heap", "heap-off", "frozen-by-fork",
// "private-mapping", "file-gone", "converted", "not-exportable", "host-without-gpu" or "mapped-file".
func (r Reason) String() string { return enumText("reason", reasonTexts, int(r)) }

// MarshalText gives the text of String, or an error for an unknown reason.
func (r Reason) MarshalText() ([]byte, error) { return marshalEnum("reason", reasonTexts, int(r)) }

// UnmarshalText reads what MarshalText gives.
func (r *Reason) UnmarshalText(text []byte) error {
	i, err := unmarshalEnum("reason", reasonTexts, text)
	if err == nil {
		*r = Reason(i)
	}
	return err
}
