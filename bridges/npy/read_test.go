package npy

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// emptyArray makes an array of zeros, unless it is large.
func emptyArray(d core.DType, shape ...int) (*core.View, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: d, Shape: shape})
	if err != nil {
		return nil, err
	}
	if l.NBytes() > 1<<20 {
		return nil, &core.Error{Kind: core.ErrUnavailable}
	}
	return core.NewView(l, coretest.NewMemory(make([]byte, l.NBytes())), &core.ViewOptions{Writable: true})
}

// TestRead reads what Write has written, and refuses the rest.
func TestRead(t *testing.T) {
	t.Parallel()
	v, err := emptyArray(core.Int16, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for i := range 6 {
		if err := core.Set(v, int16(i), i/3, i%3); err != nil {
			t.Fatal(err)
		}
	}
	turned, err := v.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer turned.Close()
	for _, w := range []*core.View{v, turned} {
		var file bytes.Buffer
		if _, err := Write(t.Context(), &file, w); err != nil {
			t.Fatal(err)
		}
		got, err := Read(&file, emptyArray)
		if err != nil {
			t.Fatal(err)
		}
		l, want := got.Layout(), w.Layout()
		if !l.Equal(want) {
			t.Errorf("%v with strides %v came back as %v with %v", want, want.Strides(), l, l.Strides())
		}
		for i := range 6 {
			at := []int{i / w.Dim(1), i % w.Dim(1)}
			x, err := core.At[int16](got, at...)
			if want, _ := core.At[int16](w, at...); err != nil || x != want {
				t.Errorf("at %v it holds %v, %v, want %v", at, x, err, want)
			}
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	with := func(header string) string { return string(frame(header)) }
	for name, c := range map[string]struct {
		file string
		kind error
		says string
	}{
		"nothing":      {"", core.ErrLayout, "not an .npy file"},
		"other":        {"PK\x03\x04 and more of it", core.ErrLayout, "not an .npy file"},
		"version":      {"\x93NUMPY\x09\x00\x00\x00", core.ErrLayout, "version 9"},
		"short length": {"\x93NUMPY\x01\x00\x00", core.ErrLayout, "inside its header"},
		"short header": {"\x93NUMPY\x01\x00\xff\x00{", core.ErrLayout, "inside its header"},
		"long header":  {"\x93NUMPY\x02\x00\xff\xff\xff\xff", core.ErrLayout, "at most"},
		"no shape":     {with("{'descr': '<f4', 'fortran_order': False}"), core.ErrLayout, "no shape"},
		"negative":     {with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), core.ErrLayout, "no shape"},
		"huge":         {with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), core.ErrLayout, "the shape"},
		"overflow":     {with("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }"), core.ErrLayout, ""},
		"large":        {with("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }"), core.ErrUnavailable, ""},
		"short data":   {with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }") + "12345678", core.ErrLayout, "12 bytes of elements, 8 are there"},
		"foreign":      {with("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }") + "1234", core.ErrDType, ">f4"},
		"objects":      {with("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), core.ErrDType, "|O"},
		"structure":    {with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), core.ErrDType, "structure"},
	} {
		if _, err := Read(strings.NewReader(c.file), emptyArray); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", name, err, c.kind, c.says)
		}
	}
}
