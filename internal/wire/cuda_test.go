package wire

import (
	"math"
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// cudaLeases are leases of one array on a GPU by every handle and fence.
func cudaLeases(tb testing.TB) map[string]contract.Lease {
	tb.Helper()
	gpu := contract.UUID{0xfc, 15: 0x0a}
	base := contract.Lease{
		ID: 7, Framework: "torch", Fence: contract.Ready{}, Layout: mustLayout(tb, core.LayoutSpec{
			DType: core.Float32, Device: core.Device{Kind: core.CUDA, Index: 3}, Shape: []int{2, 3}, Offset: 8,
		}),
	}
	with := func(h contract.Handle, r core.Route, edit func(*contract.Lease)) contract.Lease {
		l := base
		l.Handle, l.Route = h, r
		if edit != nil {
			edit(&l)
		}
		return l
	}
	ipc := contract.CUDAIPC{ID: 1, Size: 32, GPU: gpu, Mem: [64]byte{1, 63: 2}}
	chunks := contract.CUDAVMM{GPU: gpu, Chunks: []contract.CUDAChunk{{ID: 1, Size: 16}, {ID: 9, Size: 16}}}
	word := contract.CUDAWord{Page: 4, Size: 4096, Offset: 4092, Value: math.MaxUint32}
	return map[string]contract.Lease{
		"ipc": with(ipc, contract.RouteCUDAIPC, nil),
		"vmm": with(chunks, contract.RouteCUDAVMM, func(l *contract.Lease) { l.Fence = word }),
		"pool": with(contract.CUDAPool{ID: 2, Size: 32, GPU: gpu, Pool: 5, Pointer: [64]byte{3}}, contract.RouteCUDAPool,
			func(l *contract.Lease) { l.Fence = word }),
		"staged": with(chunks, contract.RouteCUDAStaged, func(l *contract.Lease) { l.Reason = contract.ReasonNotExportable }),
	}
}

func TestCUDALeasesCross(t *testing.T) {
	t.Parallel()
	for name, want := range cudaLeases(t) {
		message, err := leaseToProto(want)
		if err != nil {
			t.Errorf("%s: leaseToProto: %v", name, err)
			continue
		}
		got, err := leaseToCore(sent(t, message), contract.Request{})
		if err != nil {
			t.Errorf("%s: leaseToCore: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got.Layout.Spec(), want.Layout.Spec()) {
			t.Errorf("%s: layout %+v arrived as %+v", name, want.Layout.Spec(), got.Layout.Spec())
		}
		got.Layout, want.Layout = core.Layout{}, core.Layout{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v arrived as %+v", name, want, got)
		}
	}
}

func TestHostileCUDALeases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   string
		edit func(*pb.Lease)
	}{
		"allocation of no bytes":  {"ipc", func(l *pb.Lease) { l.GetHandle().GetCudaIpc().Size = 0 }},
		"allocation too small":    {"ipc", func(l *pb.Lease) { l.GetHandle().GetCudaIpc().Size = 31 }},
		"short handle":            {"ipc", func(l *pb.Lease) { l.GetHandle().GetCudaIpc().Mem = make([]byte, 63) }},
		"long UUID":               {"ipc", func(l *pb.Lease) { l.GetHandle().GetCudaIpc().Gpu = make([]byte, 17) }},
		"nil handle":              {"ipc", func(l *pb.Lease) { l.Handle = &pb.Handle{Kind: &pb.Handle_CudaIpc{}} }},
		"other route":             {"ipc", func(l *pb.Lease) { l.Route = pb.Route_ROUTE_CUDA_VMM }},
		"route of host memory":    {"ipc", func(l *pb.Lease) { l.Route = pb.Route_ROUTE_SHARED_HEAP }},
		"array on the CPU":        {"ipc", func(l *pb.Lease) { l.Layout.Device = &pb.Device{Kind: pb.DeviceKind_DEVICE_KIND_CPU} }},
		"array in managed memory": {"ipc", func(l *pb.Lease) { l.Layout.Device.Kind = pb.DeviceKind_DEVICE_KIND_CUDA_MANAGED }},
		"no chunks":               {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks = nil }},
		"a million chunks":        {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks = make([]*pb.CUDAChunk, 1<<20) }},
		"chunk of no bytes":       {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks[1].Size = 0 }},
		"negative chunk":          {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks[0].Size = -16 }},
		"chunks past 2^63":        {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks[0].Size = math.MaxInt64 }},
		"chunks too small":        {"vmm", func(l *pb.Lease) { l.GetHandle().GetCudaVmm().Chunks[1].Size = 15 }},
		"no pool pointer":         {"pool", func(l *pb.Lease) { l.GetHandle().GetCudaPool().Pointer = nil }},
		"word past the page":      {"pool", func(l *pb.Lease) { l.GetFence().GetCudaWord().Offset = 4096 }},
		"word before the page":    {"pool", func(l *pb.Lease) { l.GetFence().GetCudaWord().Offset = -4 }},
		"word that is not one":    {"pool", func(l *pb.Lease) { l.GetFence().GetCudaWord().Offset = 2 }},
		"page of two bytes":       {"pool", func(l *pb.Lease) { l.GetFence().Kind = &pb.Fence_CudaWord{CudaWord: &pb.CUDAWord{Size: 2}} }},
		"copy without a reason":   {"staged", func(l *pb.Lease) { l.Reason = 0 }},
		"copy through a pool":     {"pool", func(l *pb.Lease) { l.Route, l.Reason = pb.Route_ROUTE_CUDA_STAGED, pb.Reason_REASON_NOT_EXPORTABLE }},
	} {
		message, err := leaseToProto(cudaLeases(t)[c.of])
		if err != nil {
			t.Fatal(err)
		}
		c.edit(message)
		if l, err := leaseToCore(sent(t, message), contract.Request{}); err == nil {
			t.Errorf("%s: accepted as %+v", name, l)
		}
	}
	word := valid()
	word.Fence = &pb.Fence{Kind: &pb.Fence_CudaWord{CudaWord: &pb.CUDAWord{Size: 4096}}}
	if l, err := leaseToCore(word, contract.Request{}); err == nil {
		t.Errorf("a fence on host memory: accepted as %+v", l)
	}
}

func TestGPUSettingsCross(t *testing.T) {
	t.Parallel()
	want := contract.Settings{
		Program: "camera", GPUs: []contract.UUID{{1}, {15: 2}},
		Adapters: []contract.AdapterSettings{{Name: "torch", Copy: contract.CopyNever, Sync: contract.SyncStream}},
	}
	message, err := settingsToProto(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := settingsToCore(sent(t, message)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v arrived as %+v, %v", want, got, err)
	}
	for name, bad := range map[string]*pb.Settings{
		"short UUID":   {Gpus: [][]byte{make([]byte, 15)}},
		"million GPUs": {Gpus: make([][]byte, 1<<20)},
		"sync":         {Adapters: []*pb.AdapterSettings{{Name: "torch", Sync: 9}}},
	} {
		if s, err := settingsToCore(bad); err == nil {
			t.Errorf("%s: accepted as %+v", name, s)
		}
	}
}
