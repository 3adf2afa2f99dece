package wire

import (
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Each enumeration has one table, read in both directions. What is not in it does not cross.

func deviceKinds() []pair[core.DeviceKind, pb.DeviceKind] {
	return []pair[core.DeviceKind, pb.DeviceKind]{
		{core.CPU, pb.DeviceKind_DEVICE_KIND_CPU},
		{core.CUDA, pb.DeviceKind_DEVICE_KIND_CUDA},
		{core.CUDAPinned, pb.DeviceKind_DEVICE_KIND_CUDA_PINNED},
		{core.CUDAManaged, pb.DeviceKind_DEVICE_KIND_CUDA_MANAGED},
	}
}

func routes() []pair[core.Route, pb.Route] {
	return []pair[core.Route, pb.Route]{
		{core.RouteEmpty, pb.Route_ROUTE_EMPTY},
		{core.RouteSharedHeap, pb.Route_ROUTE_SHARED_HEAP},
		{core.RouteMappedFile, pb.Route_ROUTE_MAPPED_FILE},
		{core.RouteStaged, pb.Route_ROUTE_STAGED},
		{core.RouteCUDAIPC, pb.Route_ROUTE_CUDA_IPC},
		{core.RouteCUDAVMM, pb.Route_ROUTE_CUDA_VMM},
		{core.RouteCUDAPool, pb.Route_ROUTE_CUDA_POOL},
		{core.RouteCUDAStaged, pb.Route_ROUTE_CUDA_STAGED},
	}
}

func reasons() []pair[core.Reason, pb.Reason] {
	return []pair[core.Reason, pb.Reason]{
		{core.ReasonNone, pb.Reason_REASON_UNSPECIFIED},
		{core.ReasonBelowThreshold, pb.Reason_REASON_BELOW_THRESHOLD},
		{core.ReasonOutsideHeap, pb.Reason_REASON_OUTSIDE_HEAP},
		{core.ReasonHeapOff, pb.Reason_REASON_HEAP_OFF},
		{core.ReasonFrozen, pb.Reason_REASON_FROZEN},
		{core.ReasonPrivateMapping, pb.Reason_REASON_PRIVATE_MAPPING},
		{core.ReasonFileGone, pb.Reason_REASON_FILE_GONE},
		{core.ReasonConverted, pb.Reason_REASON_CONVERTED},
		{core.ReasonNotExportable, pb.Reason_REASON_NOT_EXPORTABLE},
		{core.ReasonHostWithoutGPU, pb.Reason_REASON_HOST_WITHOUT_GPU},
		{core.ReasonMappedFile, pb.Reason_REASON_MAPPED_FILE},
	}
}

func copyPolicies() []pair[core.CopyPolicy, pb.CopyPolicy] {
	return []pair[core.CopyPolicy, pb.CopyPolicy]{
		{core.CopyDefault, pb.CopyPolicy_COPY_POLICY_UNSPECIFIED},
		{core.CopyIfNeeded, pb.CopyPolicy_COPY_POLICY_IF_NEEDED},
		{core.CopyNever, pb.CopyPolicy_COPY_POLICY_NEVER},
	}
}

func syncPolicies() []pair[core.SyncPolicy, pb.SyncPolicy] {
	return []pair[core.SyncPolicy, pb.SyncPolicy]{
		{core.SyncDefault, pb.SyncPolicy_SYNC_POLICY_UNSPECIFIED},
		{core.SyncDevice, pb.SyncPolicy_SYNC_POLICY_DEVICE},
		{core.SyncStream, pb.SyncPolicy_SYNC_POLICY_STREAM},
	}
}

func effects() []pair[core.Effect, pb.Effect] {
	return []pair[core.Effect, pb.Effect]{
		{core.EffectRefuse, pb.Effect_EFFECT_REFUSE},
		{core.EffectReroute, pb.Effect_EFFECT_REROUTE},
		{core.EffectCorrect, pb.Effect_EFFECT_CORRECT},
		{core.EffectStage, pb.Effect_EFFECT_STAGE},
	}
}

type pair[C, P comparable] struct {
	core C
	wire P
}

func enumToProto[C, P comparable](table []pair[C, P], c C) (P, error) {
	for _, p := range table {
		if p.core == c {
			return p.wire, nil
		}
	}
	return *new(P), fmt.Errorf("unknown %T %v", c, c)
}

func enumToCore[C, P comparable](table []pair[C, P], w P) (C, error) {
	for _, p := range table {
		if p.wire == w {
			return p.core, nil
		}
	}
	return *new(C), fmt.Errorf("unknown %T %v", w, w)
}
