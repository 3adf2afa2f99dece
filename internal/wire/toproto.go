package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// The functions of this file fail only for values that core's own functions do not make. Texts are
// forced to UTF-8 and to a bounded length.

func layoutToProto(l core.Layout) (*pb.Layout, error) {
	m := newLayout()
	if err := setLayout(m, l); err != nil {
		return nil, err
	}
	return m, nil
}

// newLayout makes a message for setLayout.
func newLayout() *pb.Layout { return &pb.Layout{Dtype: new(pb.DType), Device: new(pb.Device)} }

// setLayout makes a message one of l, whatever it said before. It uses the message's memory again.
func setLayout(m *pb.Layout, l core.Layout) error {
	dtype, device := l.DType(), l.Device()
	kind, err := enumToProto(deviceKinds(), device.Kind)
	if err != nil {
		return err
	}
	if device.Index > math.MaxInt32 {
		return fmt.Errorf("device index %d", device.Index)
	}
	m.Dtype.Code, m.Dtype.Bits, m.Dtype.Lanes = uint32(dtype.Code()), uint32(dtype.Bits()), uint32(dtype.Lanes())
	m.Device.Kind, m.Device.Index = kind, int32(device.Index)
	m.Shape, m.Strides = m.Shape[:0], m.Strides[:0]
	for i := range l.Rank() {
		m.Shape = append(m.Shape, int64(l.Dim(i)))
		if !dtype.Packed() { // its elements are dense
			m.Strides = append(m.Strides, int64(l.Stride(i)))
		}
	}
	m.Offset, m.ReadOnly, m.Tag = int64(l.Offset()), l.ReadOnly(), longText(l.Tag())
	return nil
}

func leaseToProto(l contract.Lease) (*pb.Lease, error) {
	layout, err := layoutToProto(l.Layout)
	if err != nil {
		return nil, err
	}
	handle, err := handleToProto(l.Handle)
	if err != nil {
		return nil, err
	}
	fence, err := fenceToProto(l.Fence)
	if err != nil {
		return nil, err
	}
	route, err := enumToProto(routes(), l.Route)
	if err != nil {
		return nil, err
	}
	reason, err := enumToProto(reasons(), l.Reason)
	if err != nil {
		return nil, err
	}
	published := int64(0)
	if !l.Published.IsZero() {
		published = l.Published.UnixNano()
	}
	return &pb.Lease{
		Id:        uint64(l.ID),
		Layout:    layout,
		Handle:    handle,
		Fence:     fence,
		Framework: text(l.Framework),
		Route:     route,
		Reason:    reason,
		Quirks:    texts(l.Quirks),
		Writable:  l.Writable,
		Version:   l.Version,
		Published: published,
	}, nil
}

func handleToProto(h contract.Handle) (*pb.Handle, error) {
	switch h := h.(type) {
	case nil:
		return &pb.Handle{Kind: &pb.Handle_Empty{Empty: &pb.NoMemory{}}}, nil
	case contract.Segment:
		return &pb.Handle{Kind: &pb.Handle_Segment{Segment: segmentToProto(h)}}, nil
	case contract.CUDAIPC:
		ipc := &pb.CUDAIPC{Id: uint64(h.ID), Size: h.Size, Gpu: h.GPU[:], Mem: h.Mem[:]}
		return &pb.Handle{Kind: &pb.Handle_CudaIpc{CudaIpc: ipc}}, nil
	case contract.CUDAVMM:
		return &pb.Handle{Kind: &pb.Handle_CudaVmm{CudaVmm: vmmToProto(h)}}, nil
	case contract.CUDAPool:
		pool := &pb.CUDAPool{Id: uint64(h.ID), Size: h.Size, Gpu: h.GPU[:], Pool: uint64(h.Pool), Pointer: h.Pointer[:]}
		return &pb.Handle{Kind: &pb.Handle_CudaPool{CudaPool: pool}}, nil
	default:
		return nil, fmt.Errorf("handle of type %T", h)
	}
}

func fenceToProto(f contract.Fence) (*pb.Fence, error) {
	switch f := f.(type) {
	case contract.Ready:
		return &pb.Fence{Kind: &pb.Fence_Ready{Ready: &pb.Ready{}}}, nil
	case contract.CUDAWord:
		word := &pb.CUDAWord{Page: uint64(f.Page), Size: f.Size, Offset: f.Offset, Value: f.Value}
		return &pb.Fence{Kind: &pb.Fence_CudaWord{CudaWord: word}}, nil
	case nil:
		return nil, errors.New("no fence")
	default:
		return nil, fmt.Errorf("fence of type %T", f)
	}
}

func entryToProto(e contract.Entry) (*pb.Entry, error) {
	out := &pb.Entry{Name: text(e.Name), Framework: text(e.Framework), Published: e.Published, Also: texts(e.Also)}
	var err error
	if e.Route != "" {
		if out.Route, err = enumToProto(routes(), e.Route); err != nil {
			return nil, err
		}
	}
	if out.Reason, err = enumToProto(reasons(), e.Reason); err != nil {
		return nil, err
	}
	if e.Err == nil {
		out.Layout, err = layoutToProto(e.Layout)
	} else {
		out.Error = errorToProto(e.Err)
	}
	return out, err
}

func infoToProto(i contract.Info) (*pb.Info, error) {
	out := &pb.Info{
		Program:     text(i.Program),
		Plugin:      text(i.Plugin),
		Interpreter: text(i.Interpreter),
		Pid:         int64(i.PID),
		SharedHeap:  text(i.SharedHeap),
		Adapters:    texts(i.Adapters),
		Leases:      int64(i.Leases),
	}
	for _, f := range i.Frameworks {
		framework := &pb.Framework{Name: text(f.Name), Version: text(f.Version)}
		for _, q := range f.Quirks {
			quirk, err := quirkToProto(q)
			if err != nil {
				return nil, err
			}
			framework.Quirks = append(framework.Quirks, quirk)
		}
		out.Frameworks = append(out.Frameworks, framework)
	}
	return out, nil
}

func quirkToProto(q contract.Quirk) (*pb.Quirk, error) {
	effect, err := enumToProto(effects(), q.Effect)
	if err != nil {
		return nil, fmt.Errorf("quirk %s: %w", q.ID, err)
	}
	return &pb.Quirk{
		Id:        text(string(q.ID)),
		Framework: text(q.Framework),
		Since:     text(q.Since),
		Until:     text(q.Until),
		Protocol:  text(q.Protocol),
		Summary:   text(q.Summary),
		Remedy:    text(q.Remedy),
		Effect:    effect,
		Upstream:  text(q.Upstream),
		Choices:   texts(q.Choices),
	}, nil
}

func settingsToProto(s contract.Settings) (*pb.Settings, error) {
	promote, err := enumToProto(promotePolicies(), s.Promote)
	if err != nil {
		return nil, err
	}
	out := &pb.Settings{
		Program: text(s.Program), Gpus: gpusToProto(s.GPUs), CopyMappedFiles: s.CopyMappedFiles, Promote: promote,
	}
	for _, a := range s.Adapters {
		policy, err := enumToProto(copyPolicies(), a.Copy)
		if err != nil {
			return nil, fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		sync, err := enumToProto(syncPolicies(), a.Sync)
		if err != nil {
			return nil, fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		settings := &pb.AdapterSettings{
			Name: text(a.Name), Copy: policy, Sync: sync, DisabledQuirks: texts(a.DisabledQuirks),
			QuirkEffects: make(map[string]string, len(a.QuirkEffects)),
		}
		for id, effect := range a.QuirkEffects {
			settings.QuirkEffects[text(string(id))] = text(effect)
		}
		out.Adapters = append(out.Adapters, settings)
	}
	return out, nil
}

func texts[S ~string](list []S) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, text(string(s)))
	}
	return out
}

func segmentToProto(s contract.Segment) *pb.Segment {
	return &pb.Segment{Id: uint64(s.ID), Size: s.Size, Sealed: s.Sealed}
}
