package cai_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// sound checks what any reader may give.
func sound(t *testing.T, d core.DType, tag string, err error) {
	t.Helper()
	switch {
	case err != nil:
		if !errors.Is(err, core.ErrDType) {
			t.Fatalf("%v", err)
		}
	case !d.Valid() || d.Packed():
		t.Fatalf("%v", d)
	case d.Opaque() != (tag != ""):
		t.Fatalf("%v with the tag %q", d, tag)
	}
}

func FuzzTypestr(f *testing.F) {
	for _, s := range []string{"<f4", "|b1", ">M8[ns]", "|S5", "<U3", "|V12", "=Zf", "=?", "|O8", "<f16", "<U16384", "M8[O]"} {
		f.Add(s, "[('a', '<i4'), ('b', '<f8')]")
	}
	f.Fuzz(func(t *testing.T, typestr, descr string) {
		d, tag, err := cai.ParseTypestr(typestr, descr)
		sound(t, d, tag, err)
		if err == nil && strings.HasPrefix(strings.TrimLeft(typestr, "<>|=@!^"), "O") {
			t.Fatalf("%q is read as %v", typestr, d)
		}
		if err == nil && len(tag) < 8 && tag[min(1, len(tag)):] != "" { // tags of scalars can be read again
			if again, same, err := cai.ParseTypestr(tag, ""); err == nil && (again != d || same != tag) {
				t.Fatalf("%q has the tag %q, which is %v %q", typestr, tag, again, same)
			}
		}
	})
}

func FuzzFormat(f *testing.F) {
	for format, size := range map[string]int{
		"f": 4, ">d": 8, "3w": 12, "T{b:a:xxxxxxxd:b:}": 16, "(2,3)f": 24, "T{i:a:O:b:}": 16, "Zg": 32, "=l": 4, "": 1,
	} {
		f.Add(format, size)
	}
	f.Fuzz(func(t *testing.T, format string, size int) {
		d, tag, err := cai.ParseFormat(format, size)
		sound(t, d, tag, err)
		if err == nil && d.Size() != size {
			t.Fatalf("%q of %d bytes is %v", format, size, d)
		}
	})
}

// FuzzCAI reads dictionaries of any numbers.
func FuzzCAI(f *testing.F) {
	seed := func(words ...int64) []byte {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, uint64(w))
		}
		return b
	}
	f.Add("<f4", seed(2, 3), seed(12, 4), true, uint64(data), int64(0), 3, false, true, int64(1))
	f.Add("|b1", seed(0), seed(), false, uint64(0), int64(-1), 0, false, false, int64(0))
	f.Add("<f8", seed(1<<62, 4), seed(-1<<63, 1<<62), true, ^uint64(0), int64(1), 2, true, true, int64(0))
	f.Fuzz(func(t *testing.T, typestr string, shape, strides []byte, hasStrides bool, addr uint64, offset int64,
		version int, mask, given bool, stream int64,
	) {
		d := cai.Dict{
			Shape: words(shape), Typestr: typestr, HasStrides: hasStrides, Strides: words(strides), Data: addr,
			Offset: offset, Version: version, Mask: mask, Stream: cai.Stream{Given: given, Handle: stream},
		}
		a, err := cai.ReadCUDA(d, cuda1)
		if err != nil {
			if core.Category(err) == "" {
				t.Fatalf("error without a category: %v", err)
			}
			return
		}
		l, err := core.NewLayout(a.Spec)
		if err != nil {
			return
		}
		if l.Len() > 0 && (addr == 0 || uint64(a.Addr) != addr+uint64(offset)) {
			t.Fatalf("%v at %#x of %+v", l, a.Addr, d)
		}
		if mask || version < 0 || version > 3 || given && stream <= 0 || l.Device() != cuda1 {
			t.Fatalf("%+v was read as %+v", d, a)
		}
		if _, err := cai.ReadHost(d); err != nil {
			t.Fatalf("ReadCUDA reads %+v, ReadHost does not: %v", d, err)
		}
	})
}

func words(b []byte) []int64 {
	var w []int64
	for len(b) >= 8 {
		w = append(w, int64(binary.LittleEndian.Uint64(b)))
		b = b[8:]
	}
	return w
}
