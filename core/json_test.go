package core_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func opaque(t *testing.T, size int) core.DType {
	t.Helper()
	d, err := core.Opaque(size)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLayoutJSON holds the text of layouts, and that it can be read again.
func TestLayoutJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec core.LayoutSpec
		want string
	}{
		"dense": {
			core.LayoutSpec{DType: core.Float32, Shape: []int{480, 640}},
			`{"dtype":"float32","tag":"","shape":[480,640],"strides":[2560,4],"offset":0,"device":"cpu","read_only":false}`,
		},
		"backwards": {
			core.LayoutSpec{DType: core.Int64, Shape: []int{3}, Strides: []int{-8}, Offset: 16, ReadOnly: true},
			`{"dtype":"int64","tag":"","shape":[3],"strides":[-8],"offset":16,"device":"cpu","read_only":true}`,
		},
		"scalar": {
			core.LayoutSpec{DType: core.Bool},
			`{"dtype":"bool","tag":"","shape":[],"strides":[],"offset":0,"device":"cpu","read_only":false}`,
		},
		"packed": {
			core.LayoutSpec{DType: core.Int4, Shape: []int{3, 5}, Device: core.Device{Kind: core.CUDA, Index: 1}},
			`{"dtype":"int4","tag":"","shape":[3,5],"strides":[],"offset":0,"device":"cuda:1","read_only":false}`,
		},
		"dates": {
			core.LayoutSpec{DType: opaque(t, 8), Shape: []int{2}, Tag: "datetime64[ns]", Device: core.Device{Kind: core.CUDAPinned}},
			`{"dtype":"opaque[8]","tag":"datetime64[ns]","shape":[2],"strides":[8],"offset":0,"device":"cuda_pinned:0","read_only":false}`,
		},
		"empty": {
			core.LayoutSpec{DType: core.Uint8, Shape: []int{0, 2}, Device: core.Device{Kind: core.CUDAManaged, Index: 3}},
			`{"dtype":"uint8","tag":"","shape":[0,2],"strides":[2,1],"offset":0,"device":"cuda_managed:3","read_only":false}`,
		},
	} {
		l := layout(t, tc.spec)
		text, err := json.Marshal(l)
		if err != nil || string(text) != tc.want {
			t.Errorf("%s: %s, %v; want %s", name, text, err, tc.want)
		}
		var back core.Layout
		if err := json.Unmarshal(text, &back); err != nil || !back.Equal(l) {
			t.Errorf("%s: %s is read as %+v, %v", name, text, back.Spec(), err)
		}
	}
}

// TestLayoutJSONRefuses holds that what is read is checked, and that nothing is changed by what is not sound.
func TestLayoutJSONRefuses(t *testing.T) {
	t.Parallel()
	before := layout(t, core.LayoutSpec{DType: core.Int16, Shape: []int{7}})
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"no object":        {`[1]`, core.ErrLayout},
		"no text":          {`{"shape":"wide"}`, core.ErrLayout},
		"no dtype":         {`{"shape":[2],"device":"cpu"}`, core.ErrDType},
		"unknown dtype":    {`{"dtype":"float31","shape":[2],"device":"cpu"}`, core.ErrDType},
		"no device":        {`{"dtype":"int8","shape":[2]}`, core.ErrDevice},
		"unknown device":   {`{"dtype":"int8","shape":[2],"device":"tpu:0"}`, core.ErrDevice},
		"numbered cpu":     {`{"dtype":"int8","shape":[2],"device":"cpu:0"}`, core.ErrDevice},
		"no number":        {`{"dtype":"int8","shape":[2],"device":"cuda"}`, core.ErrDevice},
		"odd number":       {`{"dtype":"int8","shape":[2],"device":"cuda:01"}`, core.ErrDevice},
		"negative number":  {`{"dtype":"int8","shape":[2],"device":"cuda:-1"}`, core.ErrDevice},
		"negative extent":  {`{"dtype":"int8","shape":[-2],"device":"cpu"}`, core.ErrLayout},
		"too few strides":  {`{"dtype":"int8","shape":[2,2],"strides":[1],"device":"cpu"}`, core.ErrLayout},
		"missing strides":  {`{"dtype":"int8","shape":[2,2],"strides":[],"device":"cpu"}`, core.ErrLayout},
		"packed strides":   {`{"dtype":"int4","shape":[2],"strides":[1],"device":"cpu"}`, core.ErrLayout},
		"reaches too far":  {`{"dtype":"int8","shape":[2],"strides":[1],"offset":9223372036854775807,"device":"cpu"}`, core.ErrLayout},
		"larger than ever": {`{"dtype":"int8","shape":[4611686018427387904,4],"device":"cpu"}`, core.ErrLayout},
	} {
		l := before
		err := json.Unmarshal([]byte(tc.text), &l)
		if !errors.Is(err, tc.want) || core.Category(err) != core.Category(tc.want) || !l.Equal(before) {
			t.Errorf("%s: %v, %v; want %v", name, l, err, tc.want)
		}
	}
	if text, err := json.Marshal(core.Layout{}); !errors.Is(err, core.ErrDType) {
		t.Errorf("the zero Layout: %s, %v", text, err)
	}
	if text, err := json.Marshal(new(core.View)); !errors.Is(err, core.ErrDType) {
		t.Errorf("the zero View: %s, %v", text, err)
	}
}

// TestViewJSON holds the keys and values of a view's summary, open or closed.
func TestViewJSON(t *testing.T) {
	t.Parallel()
	v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{2, 3}, ReadOnly: true}),
		coretest.NewMemory(make([]byte, 3)), &core.ViewOptions{
			Name: "weights", Framework: "torch", Route: contract.RouteStaged, Reason: contract.ReasonHeapOff,
			Quirks: []core.QuirkID{"torch.a"}, Version: 7, Published: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"weights","framework":"torch","dtype":"int4","tag":"","shape":[2,3],"strides":[],"device":"cpu",` +
		`"read_only":true,"nbytes":3,"route":"staged","reason":"heap-off","copied":true,"quirks":["torch.a"],` +
		`"writable":false,"version":7,"published":"2026-01-02T03:04:05.000006Z"}`
	for _, when := range []string{"open", "closed"} {
		text, err := json.Marshal(v)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v; want %s", when, text, err, want)
		}
		shut(t, v)
	}
}

// FuzzLayoutJSON holds that whatever is read is written the same way again.
func FuzzLayoutJSON(f *testing.F) {
	for _, seed := range []string{
		`{"dtype":"float32","shape":[2,3],"strides":[12,4],"offset":0,"device":"cpu","read_only":false}`,
		`{"dtype":"int4","shape":[3],"strides":[],"device":"cuda:1"}`,
		`{"dtype":"uint8","shape":[2,2],"strides":[0,-1],"offset":1,"device":"cuda_managed:0","read_only":true}`,
		`{"dtype":"opaque[8]","tag":"datetime64[ns]","shape":[],"strides":null,"device":"cpu"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l, back core.Layout
		if err := json.Unmarshal(text, &l); err != nil {
			return
		}
		if !l.DType().Valid() {
			return // null leaves a Layout as it is
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &back); err != nil || !back.Equal(l) {
			t.Errorf("%s became %s: %v", text, again, err)
		}
	})
}
