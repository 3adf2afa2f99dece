package engine_test

import (
	_ "embed" // fakes.py
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed testdata/fakes.py
var fakes string

// fate is what became of a fake's capsules.
type fate struct {
	Made, Deleted int
	Calls         [][]string
	Names         []string
}

func fates(t *testing.T, p *programtest.Program) map[string]fate {
	t.Helper()
	v, err := p.View(t, "reports.now", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	text, err := core.Slice[uint8](v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fate{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDLPackViews(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		dtype      string
		shape      []int
		strides    []int
		readOnly   bool
		first      float64 // element 0, of float64
		copied     bool
	}{
		{name: "legacy", args: "shape=(2, 3)", shape: []int{2, 3}, strides: []int{24, 8}, readOnly: true},
		{name: "versioned", args: "versioned=True, shape=(2, 3), strides=(1, 2)", shape: []int{2, 3}, strides: []int{8, 16}},
		{name: "no_strides", args: "versioned=True, shape=(2, 3)", shape: []int{2, 3}, strides: []int{24, 8}},
		{
			name: "negative", args: "versioned=True, shape=(4,), strides=(-2,), data=ADDRESS+80",
			shape: []int{4}, strides: []int{-16}, first: 10,
		},
		{name: "broadcast", args: "versioned=True, shape=(4, 2), strides=(0, 1)", shape: []int{4, 2}, strides: []int{0, 8}, readOnly: true},
		{name: "offset", args: "versioned=True, offset=24", shape: []int{4}, strides: []int{8}, first: 3},
		{name: "read_only", args: "versioned=True, flags=1", shape: []int{4}, strides: []int{8}, readOnly: true},
		{name: "said_to_be_a_copy", args: "versioned=True, flags=2", shape: []int{4}, strides: []int{8}, copied: true},
		{name: "padded", args: "versioned=True, flags=4, code=0, bits=4", dtype: "opaque[1]", shape: []int{4}, strides: []int{1}},
		{name: "later_minor", args: "versioned=True, version=(1, 99)", shape: []int{4}, strides: []int{8}},
		{name: "scalar", args: "versioned=True, shape=(), shape_address=0", shape: []int{}, strides: []int{}},
		{name: "empty", args: "versioned=True, shape=(0, 3), strides=(3, 1), data=None", shape: []int{0, 3}, strides: []int{24, 8}},
		{name: "empty_pointing", args: "shape=(3, 0), strides=(0, 0), data=1 << 60", shape: []int{3, 0}, strides: []int{0, 0}, readOnly: true},
		{name: "lanes", args: "versioned=True, code=2, bits=32, lanes=4", dtype: "float32x4", shape: []int{4}, strides: []int{16}},
		{name: "no_deleter", args: "versioned=True, deleter=False", shape: []int{4}, strides: []int{8}},
		{name: "old_bool", args: "code=1, bits=1", dtype: "bool", shape: []int{4}, strides: []int{1}, readOnly: true},
		{name: "no_keywords", args: "keywords=False", shape: []int{4}, strides: []int{8}, readOnly: true},
		{name: "pinned", args: "device=(3, 0)", dtype: "float64", shape: []int{4}, strides: []int{8}, readOnly: true},
		{name: "odd_device", args: "device=(1, None)", shape: []int{4}, strides: []int{8}, readOnly: true},
		{name: "cpu_seven", args: "device=(1, 7)", shape: []int{4}, strides: []int{8}, readOnly: true},
	}
	var script strings.Builder
	script.WriteString(fakes)
	for _, tt := range tests {
		fmt.Fprintf(&script, "\n%s = Fake(%q, %s)", tt.name, tt.name, tt.args)
	}
	p := programtest.Start(t, script.String()+"\n", programtest.Options{})
	p.Finish(t)
	for _, tt := range tests {
		v, err := p.View(t, tt.name, contract.Request{})
		if err != nil {
			t.Error(err)
			continue
		}
		if tt.dtype == "" {
			tt.dtype = "float64"
		}
		if v.DType().String() != tt.dtype || !slices.Equal(v.Shape(), tt.shape) || v.ReadOnly() != tt.readOnly || v.Framework() != "python" {
			t.Errorf("%s: %v, read-only %v, of %s", tt.name, v.Layout(), v.ReadOnly(), v.Framework())
		}
		if strides := v.Layout().Strides(); !slices.Equal(strides, tt.strides) {
			t.Errorf("%s: strides %v, want %v", tt.name, strides, tt.strides)
		}
		if v.DType() == core.Float64 && v.Len() > 0 {
			if x, err := core.At[float64](v, make([]int, v.Rank())...); err != nil || x != tt.first {
				t.Errorf("%s begins with %v (%v), want %v", tt.name, x, err, tt.first)
			}
		}
		switch {
		case tt.copied && (v.Route() != contract.RouteStaged || v.Reason() != contract.ReasonConverted):
			t.Errorf("%s: %v because of %v, want a copy because it was converted", tt.name, v.Route(), v.Reason())
		case !tt.copied && v.Len() > 0 && v.Route() != contract.RouteSharedHeap:
			t.Errorf("%s: %v because of %v, want shared-heap", tt.name, v.Route(), v.Reason())
		}
		// An unknown object is asked twice. A lease that shares the memory holds the second tensor; one that
		// does not has no use for it.
		deleted := 2
		switch {
		case tt.name == "no_deleter":
			deleted = 0
		case !tt.copied && v.Len() > 0:
			deleted = 1
		}
		if f := fates(t, p)[tt.name]; f.Made != 2 || f.Deleted != deleted {
			t.Errorf("%s: while it is leased: %+v", tt.name, f)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	deleted := func(name string) int {
		if name == "no_deleter" {
			return 0
		}
		return 2
	}
	settled(t, p, func(log map[string]fate) error {
		for _, tt := range tests {
			f := log[tt.name]
			if f.Deleted != deleted(tt.name) || len(f.Names) != 2 || !strings.HasPrefix(f.Names[0], "used_dltensor") {
				return fmt.Errorf("%s: after its release: %+v", tt.name, f)
			}
		}
		return nil
	})
	calls := fates(t, p)
	if got := calls["versioned"].Calls; !slices.Equal(got[0], []string{"copy", "max_version"}) {
		t.Errorf("__dlpack__ was called with %v", got)
	}
	if got := calls["no_keywords"].Calls; len(got) != 4 || len(got[1]) != 0 || len(got[3]) != 0 {
		t.Errorf("__dlpack__ without keywords was called with %v", got)
	}
}

// settled waits until what the leases held has gone back, which happens behind them.
func settled(t *testing.T, p *programtest.Program, check func(map[string]fate) error) {
	t.Helper()
	var err error
	for end := time.Now().Add(programtest.Patience / 6); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = check(fates(t, p)); err == nil {
			return
		}
	}
	t.Error(err)
}

func TestDLPackRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args string
		kind       error
		text       string
		untouched  bool // the capsule never came to be read, so its destructor deletes
		none       bool // no capsule was made
	}{
		{name: "gpu", args: "device=(2, 1)", kind: core.ErrDevice, text: "the array is on cuda:1: the program has not initialised CUDA", none: true},
		{name: "rocm", args: "device=(10, 0)", kind: core.ErrDevice, text: "type 10", none: true},
		{name: "deleted", args: "device_error=TypeError('object of type NoneType has no len()')", kind: core.ErrPython, text: "NoneType", none: true},
		{name: "major", args: "versioned=True, version=(2, 0)", kind: core.ErrVersion, text: "DLPack 2.0"},
		{name: "null", args: "data=None", kind: core.ErrPointer, text: "NULL"},
		{name: "null_shape", args: "shape_address=0", kind: core.ErrPointer, text: "shape"},
		{name: "odd_shape", args: "shape_address=ADDRESS+1", kind: core.ErrPointer, text: "multiple of 8"},
		{name: "handle", args: "code=3", kind: core.ErrDType, text: "opaque handles"},
		{name: "code", args: "code=99", kind: core.ErrDType, text: "99"},
		{name: "bits", args: "bits=0", kind: core.ErrDType, text: "0 bits"},
		{name: "no_lanes", args: "lanes=0", kind: core.ErrDType, text: "0 lanes"},
		{name: "negative", args: "shape=(-1,)", kind: core.ErrLayout, text: "-1"},
		{name: "huge", args: "shape=(1 << 40, 1 << 40)", kind: core.ErrLayout, text: "larger than memory can be"},
		{name: "far", args: "shape=(3, 3), strides=(1 << 61, 1)", kind: core.ErrLayout, text: "stride"},
		{name: "axes", args: "ndim=1000", kind: core.ErrLayout, text: "1000 axes"},
		{name: "minus_axes", args: "ndim=-1", kind: core.ErrLayout, text: "-1 axes"},
		{name: "beyond", args: "shape=(1 << 40,)", kind: core.ErrPointer, text: "reaches"},
		{name: "nowhere", args: "data=4096", kind: core.ErrPointer, text: "nothing is mapped"},
		{name: "used", args: "capsule=b'used_dltensor'", kind: core.ErrProtocol, text: `"used_dltensor"`, untouched: true},
		{name: "renamed", args: "capsule=b'tensor'", kind: core.ErrProtocol, text: `"tensor"`, untouched: true},
	}
	var script strings.Builder
	script.WriteString(fakes)
	for _, tt := range tests {
		fmt.Fprintf(&script, "\n%s = Fake(%q, %s)", tt.name, tt.name, tt.args)
	}
	script.WriteString(`
class NoCapsule:
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, **kw): return "a string"
no_capsule = NoCapsule()
`)
	p := programtest.Start(t, script.String(), programtest.Options{})
	p.Finish(t)
	for _, tt := range tests {
		_, err := p.View(t, tt.name, contract.Request{})
		wants(t, tt.name, err, tt.kind, tt.text)
		for _, other := range []error{core.ErrDevice, core.ErrPython, core.ErrVersion, core.ErrPointer, core.ErrDType, core.ErrLayout, core.ErrProtocol} {
			if !errors.Is(tt.kind, other) && errors.Is(err, other) {
				t.Errorf("%s: %v is %v as well as %v", tt.name, err, other, tt.kind)
			}
		}
	}
	_, err := p.View(t, "no_capsule", contract.Request{})
	wants(t, "no capsule", err, core.ErrProtocol, "gave str")
	settled(t, p, func(log map[string]fate) error {
		for _, tt := range tests {
			f := log[tt.name]
			deleted := f.Made
			if tt.name == "used" {
				deleted = 0
			}
			if f.Deleted != deleted || (f.Made == 0) != tt.none || len(f.Names) != f.Made {
				return fmt.Errorf("%s: %+v", tt.name, f)
			}
			if len(f.Names) == 1 && strings.HasPrefix(f.Names[0], "used_") == tt.untouched && tt.name != "used" {
				return fmt.Errorf("%s: the capsule is %q in the end", tt.name, f.Names[0])
			}
		}
		return nil
	})
}

func TestInterfacesAndBuffers(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, fakes+`
import array, ctypes, mmap
plain = Interface()
no_strides = Interface(strides=None, shape=(2, 3))
stepped = Interface(strides=(16,), shape=[3])
by_list = Interface(strides=[-8], data=(ADDRESS + 24, True))
dates = Interface(typestr="<M8[ns]", descr=[("", "<M8[ns]")])
foreign = Interface(typestr=">f8")
record = Interface(typestr="|V16", descr=[("x", "<f8"), ("n", "<i8")])
over_buffer = Interface(data=bytearray(np.arange(10.0).tobytes()), offset=16)
empty = Interface(shape=(0,), data=(0, False))
masked = Interface(mask=plain)
past_buffer = Interface(data=bytearray(32), offset=8)
before_buffer = Interface(data=bytearray(64), strides=(-8,))
two_buffers = Interface(data=(1, 2, 3))
objects = Interface(typestr="|O8")
no_shape = Interface(shape=None)
texts = Interface(shape=("a",))
floats = Interface(shape=(4.0,))
deep = Interface(shape=(1,) * 65)
version = Interface(version=4)
not_a_dict = type("NotADict", (), {"__array_interface__": 7})()
cuda = CUDA()

raw = b"some bytes"
grown = bytearray(np.arange(10.0).tobytes() * 10000)
window = memoryview(grown).cast("d")[2:8:2]
numbers = array.array("i", range(10))
fixed = (ctypes.c_int16 * 3)(7, 8, 9)
class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int32), ("b", ctypes.c_double)]
pairs = (Pair * 2)()
page = mmap.mmap(-1, 4096)
nested = ((ctypes.c_float * 3) * 2)()
foreign_ints = (ctypes.c_int32.__ctype_be__ * 3)(1, 2, 3)
pointers = (ctypes.py_object * 2)()
buffer_error = Raising(__array_interface__=RuntimeError("not now"))
`, programtest.Options{})
	p.Finish(t)
	for _, tt := range []struct {
		name, dtype, tag string
		shape, strides   []int
		readOnly         bool
	}{
		{"plain", "float64", "", []int{4}, []int{8}, false},
		{"no_strides", "float64", "", []int{2, 3}, []int{24, 8}, false},
		{"stepped", "float64", "", []int{3}, []int{16}, false},
		{"by_list", "float64", "", []int{4}, []int{-8}, true},
		{"dates", "opaque[8]", "datetime64[ns]", []int{4}, []int{8}, false},
		{"foreign", "opaque[8]", ">f8", []int{4}, []int{8}, false},
		{"record", "opaque[16]", "[('x', '<f8'), ('n', '<i8')]", []int{4}, []int{16}, false},
		{"over_buffer", "float64", "", []int{4}, []int{8}, false},
		{"empty", "float64", "", []int{0}, []int{8}, false},
		{"raw", "uint8", "", []int{10}, []int{1}, true},
		{"grown", "uint8", "", []int{800000}, []int{1}, false},
		{"window", "float64", "", []int{3}, []int{16}, false},
		{"numbers", "int32", "", []int{10}, []int{4}, false},
		{"fixed", "int16", "", []int{3}, []int{2}, false},
		{"pairs", "opaque[16]", "T{<i:a:", []int{2}, []int{16}, false},
		{"page", "uint8", "", []int{4096}, []int{1}, false},
		{"nested", "float32", "", []int{2, 3}, []int{12, 4}, false},
		{"foreign_ints", "opaque[4]", ">i4", []int{3}, []int{4}, false},
	} {
		v, err := p.View(t, tt.name, contract.Request{})
		if err != nil {
			t.Error(err)
			continue
		}
		tagged := v.Tag() == tt.tag || tt.name == "pairs" && strings.HasPrefix(v.Tag(), tt.tag) // differs by version
		if v.DType().String() != tt.dtype || !tagged || v.ReadOnly() != tt.readOnly {
			t.Errorf("%s: %v tag %q, read-only %v", tt.name, v.DType(), v.Tag(), v.ReadOnly())
		}
		if !slices.Equal(v.Shape(), tt.shape) || !slices.Equal(v.Layout().Strides(), tt.strides) {
			t.Errorf("%s: shape %v, strides %v", tt.name, v.Shape(), v.Layout().Strides())
		}
	}
	for _, tt := range []struct {
		name string
		kind error
		text string
	}{
		{"masked", core.ErrUnsupported, "mask"},
		{"past_buffer", core.ErrPointer, "bytes 8 to 40 of a buffer of 32"},
		{"before_buffer", core.ErrPointer, "bytes -24 to 8"},
		{"two_buffers", core.ErrProtocol, `"data"`},
		{"objects", core.ErrDType, "pointers"},
		{"no_shape", core.ErrProtocol, `"shape"`},
		{"texts", core.ErrPython, "TypeError"},
		{"floats", core.ErrPython, "TypeError"},
		{"deep", core.ErrLayout, "65 axes"},
		{"version", core.ErrVersion, "version 4"},
		{"not_a_dict", core.ErrProtocol, "is int, expected dict"},
		{"cuda", core.ErrDevice, "has not initialised CUDA"},
		{"pointers", core.ErrDType, "pointers"},
		{"buffer_error", core.ErrPython, "RuntimeError: not now"},
	} {
		_, err := p.View(t, tt.name, contract.Request{})
		wants(t, tt.name, err, tt.kind, tt.text)
	}
}
