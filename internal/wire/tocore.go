package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// The functions of this file take messages from a side that is not trusted. They accept any message,
// nil included, and give a valid value or an error; the caller puts the error under ErrProtocol.

func layoutToCore(l *pb.Layout) (core.Layout, error) {
	if l == nil {
		return core.Layout{}, errors.New("no layout")
	}
	dtype, err := dtypeToCore(l.GetDtype())
	if err != nil {
		return core.Layout{}, err
	}
	device, err := deviceToCore(l.GetDevice())
	if err != nil {
		return core.Layout{}, err
	}
	// Before anything of that length is copied.
	if rank := max(len(l.GetShape()), len(l.GetStrides())); rank > core.MaxRank {
		return core.Layout{}, fmt.Errorf("layout of %d axes, expected at most %d", rank, core.MaxRank)
	}
	shape, err := toInts("extent", l.GetShape())
	if err != nil {
		return core.Layout{}, err
	}
	strides, err := toInts("stride", l.GetStrides())
	if err != nil {
		return core.Layout{}, err
	}
	offset, err := toInt("offset", l.GetOffset())
	if err != nil {
		return core.Layout{}, err
	}
	if len(l.GetTag()) > maxLongText {
		return core.Layout{}, fmt.Errorf("tag of %d bytes", len(l.GetTag()))
	}
	return core.NewLayout(core.LayoutSpec{
		DType: dtype, Device: device, Shape: shape, Strides: strides, Offset: offset,
		ReadOnly: l.GetReadOnly(), Tag: l.GetTag(),
	})
}

func dtypeToCore(d *pb.DType) (core.DType, error) {
	const limit = math.MaxUint16 // beyond any field of a DType; keeps the conversions to int exact
	if d == nil {
		return core.Invalid, errors.New("no dtype")
	}
	if max(d.GetCode(), d.GetBits(), d.GetLanes()) > limit {
		return core.Invalid, fmt.Errorf("dtype of code %d, %d bits, %d lanes", d.GetCode(), d.GetBits(), d.GetLanes())
	}
	return core.NewDType(int(d.GetCode()), int(d.GetBits()), int(d.GetLanes()))
}

func deviceToCore(d *pb.Device) (core.Device, error) {
	if d == nil {
		return core.Device{}, errors.New("no device")
	}
	kind, err := enumToCore(deviceKinds(), d.GetKind())
	if err != nil {
		return core.Device{}, err
	}
	if d.GetIndex() < 0 || kind == core.CPU && d.GetIndex() != 0 {
		return core.Device{}, fmt.Errorf("device index %d", d.GetIndex())
	}
	return core.Device{Kind: kind, Index: int(d.GetIndex())}, nil
}

func toInt(what string, n int64) (int, error) {
	if int64(int(n)) != n {
		return 0, fmt.Errorf("%s %d is beyond this machine's range", what, n)
	}
	return int(n), nil
}

// toInts gives nil for an empty list: for strides that means row-major.
func toInts(what string, list []int64) ([]int, error) {
	var out []int
	for _, n := range list {
		i, err := toInt(what, n)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// leaseToCore also checks what must hold between the parts of a lease, and between the lease and the
// request that it answers.
func leaseToCore(l *pb.Lease, req contract.Request) (contract.Lease, error) {
	out, err := leaseFromProto(l)
	if err != nil {
		return contract.Lease{}, err
	}
	return out, out.Check(req)
}

// leaseFromProto is leaseToCore without the last check.
func leaseFromProto(l *pb.Lease) (contract.Lease, error) {
	if l.GetId() == 0 {
		return contract.Lease{}, errors.New("no lease")
	}
	var err error
	out := contract.Lease{
		ID: contract.LeaseID(l.GetId()), Framework: l.GetFramework(), Writable: l.GetWritable(), Version: l.GetVersion(),
	}
	if n := l.GetPublished(); n != 0 {
		out.Published = time.Unix(0, n)
	}
	if out.Layout, err = layoutToCore(l.GetLayout()); err != nil {
		return contract.Lease{}, err
	}
	if out.Handle, err = handleToCore(l.GetHandle()); err != nil {
		return contract.Lease{}, err
	}
	if out.Fence, err = fenceToCore(l.GetFence()); err != nil {
		return contract.Lease{}, err
	}
	if out.Route, err = enumToCore(routes(), l.GetRoute()); err != nil {
		return contract.Lease{}, err
	}
	if out.Reason, err = enumToCore(reasons(), l.GetReason()); err != nil {
		return contract.Lease{}, err
	}
	if out.Quirks, err = toTexts[core.QuirkID]("quirk", l.GetQuirks()); err != nil {
		return contract.Lease{}, err
	}
	return out, checkText("framework", out.Framework)
}

func segmentToCore(s *pb.Segment) (contract.Segment, error) {
	if s.GetSize() <= 0 {
		return contract.Segment{}, fmt.Errorf("segment of %d bytes", s.GetSize())
	}
	return contract.Segment{ID: contract.SegmentID(s.GetId()), Size: s.GetSize(), Sealed: s.GetSealed()}, nil
}

func handleToCore(h *pb.Handle) (contract.Handle, error) {
	switch kind := h.GetKind().(type) {
	case *pb.Handle_Empty:
		return nil, nil //nolint:nilnil // nil is the handle of an array without elements
	case *pb.Handle_Segment:
		s, err := segmentToCore(kind.Segment)
		if err != nil {
			return nil, err
		}
		return s, nil
	case *pb.Handle_CudaIpc:
		return ipcToCore(kind.CudaIpc)
	case *pb.Handle_CudaVmm:
		return vmmToCore(kind.CudaVmm)
	case *pb.Handle_CudaPool:
		return poolToCore(kind.CudaPool)
	default:
		return nil, errors.New("no handle that this version knows")
	}
}

func fenceToCore(f *pb.Fence) (contract.Fence, error) {
	switch kind := f.GetKind().(type) {
	case *pb.Fence_Ready:
		return contract.Ready{}, nil
	case *pb.Fence_CudaWord:
		return wordToCore(kind.CudaWord)
	default:
		return nil, errors.New("no fence that this version knows")
	}
}

func entryToCore(e *pb.Entry) (contract.Entry, error) {
	out := contract.Entry{Name: e.GetName(), Framework: e.GetFramework(), Published: e.GetPublished()}
	if err := errors.Join(checkText("name", out.Name), checkText("framework", out.Framework)); err != nil {
		return contract.Entry{}, err
	}
	var err error
	if out.Also, err = toTexts[string]("name", e.GetAlso()); err != nil {
		return contract.Entry{}, err
	}
	if e.GetRoute() != pb.Route_ROUTE_UNSPECIFIED {
		if out.Route, err = enumToCore(routes(), e.GetRoute()); err != nil {
			return contract.Entry{}, err
		}
	}
	if out.Reason, err = enumToCore(reasons(), e.GetReason()); err != nil {
		return contract.Entry{}, err
	}
	if e.GetError() != nil {
		out.Err = errorToCore(e.GetError())
		return out, nil
	}
	if out.Layout, err = layoutToCore(e.GetLayout()); err != nil {
		return contract.Entry{}, fmt.Errorf("entry %q: %w", out.Name, err)
	}
	return out, nil
}

func requestToCore(r *pb.LeaseRequest) (contract.Request, error) {
	policy, err := enumToCore(copyPolicies(), r.GetCopy())
	if err != nil {
		return contract.Request{}, err
	}
	return contract.Request{Writable: r.GetWritable(), Copy: policy, NoWait: r.GetNoWait(), NoCode: r.GetNoCode()}, checkText("name", r.GetName())
}
