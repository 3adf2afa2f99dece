package cai_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

const data = 0x7f0000001000

// f32 is the dictionary of a row-major array of float32.
func f32(change func(*cai.Dict)) cai.Dict {
	d := cai.Dict{Shape: []int64{2, 3}, Typestr: "<f4", Data: data, Version: 3}
	if change != nil {
		change(&d)
	}
	return d
}

var cuda1 = core.Device{Kind: core.CUDA, Index: 1}

func TestRead(t *testing.T) {
	t.Parallel()
	plain := core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}}
	spec := func(change func(*core.LayoutSpec)) core.LayoutSpec {
		s := plain
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name string
		dict cai.Dict
		want core.LayoutSpec
		addr uintptr
	}{
		{"without strides", f32(nil), plain, data},
		{
			"with strides", f32(func(d *cai.Dict) { d.HasStrides, d.Strides = true, []int64{4, -8} }),
			spec(func(s *core.LayoutSpec) { s.Strides = []int{4, -8} }), data,
		},
		{"strides that are None", f32(func(d *cai.Dict) { d.Strides = []int64{1, 2} }), plain, data},
		{"version 0", f32(func(d *cai.Dict) { d.Version = 0 }), plain, data},
		{"version 1", f32(func(d *cai.Dict) { d.Version = 1 }), plain, data},
		{"version 2", f32(func(d *cai.Dict) { d.Version = 2 }), plain, data},
		{
			"read-only", f32(func(d *cai.Dict) { d.ReadOnly = true }),
			spec(func(s *core.LayoutSpec) { s.ReadOnly = true }), data,
		},
		{"offset", f32(func(d *cai.Dict) { d.Offset = 12 }), plain, data + 12},
		{"negative offset", f32(func(d *cai.Dict) { d.Offset = -12 }), plain, data - 12},
		{
			"no axis", f32(func(d *cai.Dict) { d.Shape, d.HasStrides, d.Strides = nil, true, nil }),
			core.LayoutSpec{DType: core.Float32, Shape: []int{}, Strides: []int{}},
			data,
		},
		{
			"no elements at NULL", f32(func(d *cai.Dict) { d.Shape, d.Data = []int64{0, 3}, 0 }),
			spec(func(s *core.LayoutSpec) { s.Shape = []int{0, 3} }), 0,
		},
		{
			"no elements with an offset that wraps", f32(func(d *cai.Dict) { d.Shape, d.Offset = []int64{0}, math.MinInt64 }),
			spec(func(s *core.LayoutSpec) { s.Shape = []int{0} }), data,
		},
		{
			"structure", f32(func(d *cai.Dict) { d.Typestr, d.Descr = "|V8", "[('a', '<i4'), ('b', '<f4')]" }),
			spec(func(s *core.LayoutSpec) { s.DType, s.Tag = opaque(8), "[('a', '<i4'), ('b', '<f4')]" }), data,
		},
		{
			"broadcast", f32(func(d *cai.Dict) { d.HasStrides, d.Strides = true, []int64{0, 4} }),
			spec(func(s *core.LayoutSpec) { s.Strides = []int{0, 4} }), data,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			host, err := cai.ReadHost(tc.dict)
			if err != nil || !reflect.DeepEqual(host, cai.Array{Spec: tc.want, Addr: tc.addr}) {
				t.Errorf("host: %+v, %v; want %+v", host, err, tc.want)
			}
			tc.want.Device = cuda1
			device, err := cai.ReadCUDA(tc.dict, cuda1)
			if err != nil || !reflect.DeepEqual(device, cai.Array{Spec: tc.want, Addr: tc.addr}) {
				t.Errorf("CUDA: %+v, %v; want %+v", device, err, tc.want)
			}
			if _, err := core.NewLayout(device.Spec); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		dict cai.Dict
		kind error
		text string
	}{
		{"version 4", f32(func(d *cai.Dict) { d.Version = 4 }), core.ErrVersion, "version 4"},
		{"version -1", f32(func(d *cai.Dict) { d.Version = -1 }), core.ErrVersion, "version -1"},
		{"mask", f32(func(d *cai.Dict) { d.Mask = true }), core.ErrUnsupported, "mask"},
		{"object", f32(func(d *cai.Dict) { d.Typestr = "|O8" }), core.ErrDType, "Python objects"},
		{"no typestr", f32(func(d *cai.Dict) { d.Typestr = "" }), core.ErrDType, "cannot be read"},
		{"NULL", f32(func(d *cai.Dict) { d.Data = 0 }), core.ErrPointer, "no storage"},
		{"NULL of no axis", f32(func(d *cai.Dict) { d.Shape, d.Data = nil, 0 }), core.ErrPointer, "no storage"},
		{
			"too few strides", f32(func(d *cai.Dict) { d.HasStrides, d.Strides = true, []int64{4} }), core.ErrLayout,
			"1 strides for 2",
		},
		{"offset that wraps", f32(func(d *cai.Dict) { d.Offset = -data - 1 }), core.ErrPointer, "offset"},
		{"offset that overflows", f32(func(d *cai.Dict) { d.Data, d.Offset = math.MaxUint64-3, 8 }), core.ErrPointer, "offset"},
	} {
		for side, read := range map[string]func() (cai.Array, error){
			"host": func() (cai.Array, error) { return cai.ReadHost(tc.dict) },
			"CUDA": func() (cai.Array, error) { return cai.ReadCUDA(tc.dict, cuda1) },
		} {
			a, err := read()
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s on the %s: %+v; want %q with %q, have %v", tc.name, side, a, tc.kind, tc.text, err)
			}
		}
	}
	for name, shape := range map[string][]int64{
		"negative extent": {2, -1}, "overflow": {1 << 40, 1 << 40}, "rank": make([]int64, 65),
	} {
		a, err := cai.ReadHost(f32(func(d *cai.Dict) { d.Shape = shape }))
		if err != nil {
			t.Errorf("%s is not for this package to find: %v", name, err)
		}
		if _, err := core.NewLayout(a.Spec); !errors.Is(err, core.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, s := range []cai.Stream{{}, {Given: true, Handle: 1}, {Given: true, Handle: 2}, {Given: true, Handle: 0x55d0}} {
		a, err := cai.ReadCUDA(f32(func(d *cai.Dict) { d.Stream = s }), cuda1)
		if err != nil || a.Stream != s {
			t.Errorf("stream %+v became %+v, %v", s, a.Stream, err)
		}
	}
	for _, handle := range []int64{0, -1, math.MinInt64} {
		_, err := cai.ReadCUDA(f32(func(d *cai.Dict) { d.Stream = cai.Stream{Given: true, Handle: handle} }), cuda1)
		if !errors.Is(err, core.ErrProtocol) {
			t.Errorf("stream %d: %v", handle, err)
		}
	}
	a, err := cai.ReadHost(f32(func(d *cai.Dict) { d.Stream = cai.Stream{Given: true} }))
	if err != nil || a.Stream != (cai.Stream{}) {
		t.Errorf("a stream on the host: %+v, %v", a.Stream, err)
	}
}
