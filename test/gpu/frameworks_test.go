//go:build cuda

package gpu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// framework is one whose arrays are tested, in one process: what is chosen at its start is chosen by env.
type framework struct {
	name  string // of testdata/programs/with_NAME.py
	setup string // what env means, for the report
	env   map[string]string
	kinds []kind
	// made says that its arrays are never written: a new one is made instead, whose hand-over may wait
	// until its framework has queued the work.
	made bool
}

// kind is memory of one kind.
type kind struct {
	name   string
	routes []core.Route // one of them is right
}

var (
	ipc    = []core.Route{core.RouteCUDAIPC}
	vmm    = []core.Route{core.RouteCUDAVMM}
	pool   = []core.Route{core.RouteCUDAPool}
	onGPU  = []core.Route{core.RouteCUDAStaged}
	onHost = []core.Route{core.RouteStaged}
	copied = []core.Route{core.RouteCUDAStaged, core.RouteStaged}

	// The driver's own pinned memory may be a file that others can map.
	pinnedRoutes = []core.Route{core.RouteStaged, core.RouteMappedFile}
)

var allFrameworks = []framework{
	{name: "driver", kinds: []kind{
		{"cuMemAlloc", ipc},
		{"vmm", vmm},
		{"shared pool", pool},
		{"pool", onGPU},
		{"managed", copied},
		{"pinned", pinnedRoutes},
	}},
	{name: "pycuda", kinds: []kind{
		{"mem_alloc", ipc},
		{"pool", ipc},
		{"managed", copied},
		{"pagelocked", onHost},
	}},
	{name: "torch", kinds: []kind{
		{"caching", ipc},
		{"pinned", onHost},
	}},
	{
		name: "torch", setup: "expandable segments",
		env:   map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
		kinds: []kind{{"caching", vmm}},
	},
	{
		name: "torch", setup: "cudaMallocAsync",
		env:   map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
		kinds: []kind{{"caching", onGPU}},
	},
	{name: "cupy", kinds: []kind{
		{"pool", ipc},
		{"no pool", ipc},
		{"malloc_async", onGPU},
		{"managed", copied},
		{"pinned", onHost},
	}},
	{name: "jax", setup: "one allocation ahead", made: true, kinds: []kind{
		{"device", vmm},
		{"pinned_host", onHost},
	}},
	{
		name: "jax", setup: "allocations on demand", made: true,
		env:   map[string]string{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
		kinds: []kind{{"device", vmm}},
	},
	{
		name: "jax", setup: "cuda_async", made: true,
		env:   map[string]string{"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
		kinds: []kind{{"device", onGPU}},
	},
	{name: "numba", kinds: []kind{
		{"device", ipc},
		{"managed", copied},
		{"mapped", onHost},
		{"pinned", onHost},
	}},
	{name: "cudacore", kinds: []kind{
		{"pool", onGPU},
		{"shared pool", pool},
		{"vmm", vmm},
		{"pinned", onHost},
	}},
	{name: "warp", kinds: []kind{
		{"pool", onGPU},
		{"no pool", ipc},
		{"pinned", onHost},
	}},
	{name: "dali", made: true, kinds: []kind{
		{"pipeline output", ipc},
	}},
}

// frameworks lists those that are there, which whoever starts the tests says.
func frameworks(tb testing.TB) []framework {
	tb.Helper()
	names := strings.Split(os.Getenv("NDBRIDGE_TEST_GPU_FRAMEWORKS"), ",")
	var found []framework
	for _, name := range names {
		before := len(found)
		for _, f := range allFrameworks {
			if f.name == name {
				found = append(found, f)
			}
		}
		if len(found) == before {
			tb.Fatalf("NDBRIDGE_TEST_GPU_FRAMEWORKS names %q, which no test knows; run make test or make test-gpu", name)
		}
	}
	return found
}

// has says whether a framework is there.
func has(tb testing.TB, name string) bool {
	tb.Helper()
	return slices.ContainsFunc(frameworks(tb), func(f framework) bool { return f.name == name })
}

// title names a framework in one setup: "torch, expandable segments".
func (f framework) title() string {
	if f.setup == "" {
		return f.name
	}
	return f.name + ", " + f.setup
}
