package wire

import (
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
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
		{contract.RouteEmpty, pb.Route_ROUTE_EMPTY},
		{contract.RouteSharedHeap, pb.Route_ROUTE_SHARED_HEAP},
		{contract.RouteMappedFile, pb.Route_ROUTE_MAPPED_FILE},
		{contract.RouteStaged, pb.Route_ROUTE_STAGED},
		{contract.RouteCUDAIPC, pb.Route_ROUTE_CUDA_IPC},
		{contract.RouteCUDAVMM, pb.Route_ROUTE_CUDA_VMM},
		{contract.RouteCUDAPool, pb.Route_ROUTE_CUDA_POOL},
		{contract.RouteCUDAStaged, pb.Route_ROUTE_CUDA_STAGED},
	}
}

func reasons() []pair[core.Reason, pb.Reason] {
	return []pair[core.Reason, pb.Reason]{
		{"", pb.Reason_REASON_UNSPECIFIED},
		{contract.ReasonBelowThreshold, pb.Reason_REASON_BELOW_THRESHOLD},
		{contract.ReasonOutsideHeap, pb.Reason_REASON_OUTSIDE_HEAP},
		{contract.ReasonHeapOff, pb.Reason_REASON_HEAP_OFF},
		{contract.ReasonFrozen, pb.Reason_REASON_FROZEN},
		{contract.ReasonPrivateMapping, pb.Reason_REASON_PRIVATE_MAPPING},
		{contract.ReasonFileGone, pb.Reason_REASON_FILE_GONE},
		{contract.ReasonConverted, pb.Reason_REASON_CONVERTED},
		{contract.ReasonNotExportable, pb.Reason_REASON_NOT_EXPORTABLE},
		{contract.ReasonHostWithoutGPU, pb.Reason_REASON_HOST_WITHOUT_GPU},
		{contract.ReasonMayBeDonated, pb.Reason_REASON_MAY_BE_DONATED},
		{contract.ReasonMappedFile, pb.Reason_REASON_MAPPED_FILE},
	}
}

func copyPolicies() []pair[contract.CopyPolicy, pb.CopyPolicy] {
	return []pair[contract.CopyPolicy, pb.CopyPolicy]{
		{"", pb.CopyPolicy_COPY_POLICY_UNSPECIFIED},
		{contract.CopyIfNeeded, pb.CopyPolicy_COPY_POLICY_IF_NEEDED},
		{contract.CopyNever, pb.CopyPolicy_COPY_POLICY_NEVER},
	}
}

func promotePolicies() []pair[contract.PromotePolicy, pb.PromotePolicy] {
	return []pair[contract.PromotePolicy, pb.PromotePolicy]{
		{"", pb.PromotePolicy_PROMOTE_POLICY_UNSPECIFIED},
		{contract.PromoteAlways, pb.PromotePolicy_PROMOTE_POLICY_ALWAYS},
		{contract.PromoteSafe, pb.PromotePolicy_PROMOTE_POLICY_SAFE},
		{contract.PromoteNever, pb.PromotePolicy_PROMOTE_POLICY_NEVER},
	}
}

func syncPolicies() []pair[contract.SyncPolicy, pb.SyncPolicy] {
	return []pair[contract.SyncPolicy, pb.SyncPolicy]{
		{"", pb.SyncPolicy_SYNC_POLICY_UNSPECIFIED},
		{contract.SyncDevice, pb.SyncPolicy_SYNC_POLICY_DEVICE},
		{contract.SyncStream, pb.SyncPolicy_SYNC_POLICY_STREAM},
	}
}

func effects() []pair[contract.Effect, pb.Effect] {
	return []pair[contract.Effect, pb.Effect]{
		{contract.EffectRefuse, pb.Effect_EFFECT_REFUSE},
		{contract.EffectReroute, pb.Effect_EFFECT_REROUTE},
		{contract.EffectCorrect, pb.Effect_EFFECT_CORRECT},
		{contract.EffectStage, pb.Effect_EFFECT_STAGE},
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
