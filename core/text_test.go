package core_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// enumeration is what all enumerations of this package can do.
type enumeration interface {
	comparable
	fmt.Stringer
	encoding.TextMarshaler
}

// checkTexts goes through all values of an enumeration, from first on, and one more.
func checkTexts[E interface {
	enumeration
	~uint8
}, P interface {
	*E
	encoding.TextUnmarshaler
}](t *testing.T, first E, texts ...string) {
	t.Helper()
	for i, want := range texts {
		e := first + E(i)
		text, err := e.MarshalText()
		if e.String() != want || string(text) != want || err != nil {
			t.Errorf("%T %d is %q, marshalled %q, %v; want %q", e, i, e, text, err, want)
		}
		back := E(99)
		if err := P(&back).UnmarshalText([]byte(want)); err != nil || back != e {
			t.Errorf("%T %q is read as %v, %v", e, want, back, err)
		}
	}
	for _, e := range []E{first + E(len(texts)), 200} {
		text, err := e.MarshalText()
		if err == nil {
			t.Errorf("unknown %T is marshalled as %q", e, text)
		}
		if want := fmt.Sprintf("(%d)", uint8(e)); len(e.String()) <= len(want) || e.String()[len(e.String())-len(want):] != want {
			t.Errorf("unknown %T is printed as %q", e, e)
		}
	}
	e := first
	for _, text := range []string{"", "no such thing", texts[0] + " ", "(1)"} {
		if err := P(&e).UnmarshalText([]byte(text)); err == nil || e != first {
			t.Errorf("%T %q is read as %v, %v", e, text, e, err)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	checkTexts(t, core.RouteNone, "none", "empty", "shared-heap", "mapped-file", "staged",
		"cuda-ipc", "cuda-vmm", "cuda-pool", "cuda-staged")
	checkTexts(t, core.ReasonNone, "none", "below-threshold", "outside-heap", "heap-off", "frozen-by-fork",
		"private-mapping", "file-gone", "converted", "not-exportable", "host-without-gpu", "mapped-file")
	checkTexts(t, core.SyncDefault, "default", "device", "stream")
	checkTexts(t, core.EffectRefuse, "refuse", "reroute", "correct", "stage")
	checkTexts(t, core.CPU, "cpu", "cuda", "cuda_pinned", "cuda_managed")
	checkTexts(t, core.CopyDefault, "default", "if-needed", "never")
}

func TestZeroEffectHasNoText(t *testing.T) {
	t.Parallel()
	if text, err := core.Effect(0).MarshalText(); err == nil {
		t.Errorf("marshalled as %q", text)
	}
	if got := core.Effect(0).String(); got != "effect(0)" {
		t.Errorf("%q", got)
	}
}

func TestTextsInJSON(t *testing.T) {
	t.Parallel()
	type answer struct {
		Route  core.Route
		Reason core.Reason
	}
	in := answer{core.RouteStaged, core.ReasonBelowThreshold}
	text, err := json.Marshal(in)
	if want := `{"Route":"staged","Reason":"below-threshold"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var out answer
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestCopied(t *testing.T) {
	t.Parallel()
	for r := core.RouteNone; r <= core.RouteStaged; r++ {
		if r.Copied() != (r == core.RouteStaged) {
			t.Errorf("%v: copied %v", r, r.Copied())
		}
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d        core.Device
		text     string
		readable bool
	}{
		{core.Device{}, "cpu", true},
		{core.Device{Kind: core.CUDA}, "cuda:0", false},
		{core.Device{Kind: core.CUDA, Index: 7}, "cuda:7", false},
		{core.Device{Kind: core.CUDAPinned, Index: 1}, "cuda_pinned:1", true},
		{core.Device{Kind: core.CUDAManaged}, "cuda_managed:0", true},
		{core.Device{Kind: 9, Index: 2}, "device(9):2", false},
	} {
		if tc.d.String() != tc.text || tc.d.HostReadable() != tc.readable {
			t.Errorf("%+v is %q, readable %v", tc.d, tc.d, tc.d.HostReadable())
		}
	}
}
