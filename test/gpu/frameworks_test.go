//go:build cuda

package gpu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
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
	// prompt says that nothing of it can be made late.
	prompt bool
}

// kind is memory of one kind.
type kind struct {
	name   string
	routes []core.Route // one of them is right
}

var (
	ipc   = []core.Route{contract.RouteCUDAIPC}
	vmm   = []core.Route{contract.RouteCUDAVMM}
	pool  = []core.Route{contract.RouteCUDAPool}
	onGPU = []core.Route{contract.RouteCUDAStaged}
	// Arrays of JAX that were not published are held as copies, since they may be donated.
	spared = []core.Route{contract.RouteCUDAVMM, contract.RouteCUDAStaged}
	copied = []core.Route{contract.RouteCUDAStaged, contract.RouteStaged}

	// How a framework allocates may be its own business.
	anyOnGPU = []core.Route{contract.RouteCUDAIPC, contract.RouteCUDAVMM, contract.RouteCUDAPool, contract.RouteCUDAStaged}

	// The driver's own pinned memory may be a file that others can map.
	pinnedRoutes = []core.Route{contract.RouteStaged, contract.RouteMappedFile}
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
		{"pagelocked", pinnedRoutes},
	}},
	{name: "torch", kinds: []kind{
		{"caching", ipc},
		{"pinned", pinnedRoutes},
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
		{"pinned", pinnedRoutes},
	}},
	{name: "jax", setup: "one allocation ahead", made: true, kinds: []kind{
		{"device", spared},
		{"pinned_host", pinnedRoutes},
	}},
	{
		name: "jax", setup: "allocations on demand", made: true,
		env:   map[string]string{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
		kinds: []kind{{"device", anyOnGPU}},
	},
	{
		name: "jax", setup: "cuda_async", made: true,
		env:   map[string]string{"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
		kinds: []kind{{"device", anyOnGPU}},
	},
	{name: "numba", kinds: []kind{
		{"device", ipc},
		{"managed", copied},
		{"mapped", pinnedRoutes},
		{"pinned", pinnedRoutes},
	}},
	{name: "cudacore", kinds: []kind{
		{"pool", onGPU},
		{"shared pool", pool},
		{"vmm", vmm},
		{"managed", copied},
		{"pinned", pinnedRoutes},
		{"pinned pool", pinnedRoutes},
	}},
	{name: "warp", kinds: []kind{
		{"pool", onGPU},
		{"no pool", ipc},
		{"pinned", pinnedRoutes},
	}},
	{name: "dali", made: true, prompt: true, kinds: []kind{
		{"pipeline output", anyOnGPU},
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
