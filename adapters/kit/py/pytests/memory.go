package main

import (
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

func (l *library) testBuffers(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("import array, ctypes")
		tests := map[string]struct {
			flags int
			want  py.Buffer
		}{
			"b'abc'":       {py.BufferFull, py.Buffer{Len: 3, ItemSize: 1, Rank: 1, ReadOnly: true, Format: "B", Shape: []int{3}, Strides: []int{1}}},
			"bytearray(4)": {py.BufferFull | py.BufferWritable, py.Buffer{Len: 4, ItemSize: 1, Rank: 1, Format: "B", Shape: []int{4}, Strides: []int{1}}},
			"array.array('d', [1, 2])": {py.BufferFull, py.Buffer{
				Len: 16, ItemSize: 8, Rank: 1, Format: "d", Shape: []int{2}, Strides: []int{8},
			}},
			"memoryview(array.array('h', range(6)))[::-2]": {py.BufferFull, py.Buffer{
				Len: 6, ItemSize: 2, Rank: 1, Format: "h", Shape: []int{3}, Strides: []int{-4},
			}},
			"memoryview(b'abcdef').cast('B', (2, 3))": {py.BufferFull, py.Buffer{
				Len: 6, ItemSize: 1, Rank: 2, ReadOnly: true, Format: "B", Shape: []int{2, 3}, Strides: []int{3, 1},
			}},
			"ctypes.c_int(5)":      {py.BufferFull, py.Buffer{Len: 4, ItemSize: 4, Format: "<i"}},
			"memoryview(bytes(8))": {py.BufferND, py.Buffer{Len: 8, ItemSize: 1, Rank: 1, ReadOnly: true, Shape: []int{8}}},
			"memoryview(bytes(8)).cast('d')": {py.BufferND | py.BufferFormat, py.Buffer{
				Len: 8, ItemSize: 8, Rank: 1, ReadOnly: true, Format: "d", Shape: []int{1},
			}},
		}
		for expression, tt := range tests {
			o := p.eval(expression)
			b, err := p.Buffer(o, tt.flags)
			if err != nil {
				t.Errorf("%s: %v", expression, err)
				continue
			}
			if b.Addr == 0 || b.Indirect {
				t.Errorf("%s: %+v", expression, b)
			}
			got := *b
			b.Release()
			b.Release() // does nothing
			want := tt.want
			want.Addr = got.Addr
			for _, v := range []*py.Buffer{&got, &want} {
				if !reflect.DeepEqual(fields(v), fields(&want)) {
					t.Errorf("%s: %+v, want %+v", expression, fields(v), fields(&want))
				}
			}
		}
		for expression, want := range map[string]string{
			"5": "TypeError", "b'abc'": "BufferError", "None": "TypeError", "memoryview(bytes(8))[::2]": "BufferError",
		} {
			_, err := p.Buffer(p.eval(expression), py.BufferWritable)
			p.wantRaised(expression, err, want)
		}
	})
}

// fields is what a Buffer says.
func fields(b *py.Buffer) []any {
	return []any{b.Addr, b.Len, b.ItemSize, b.Rank, b.ReadOnly, b.Indirect, b.Format, b.Shape, b.Strides}
}

// The scope's end, and only that, gives the memory back: a bytearray says so by what it refuses.
func (l *library) testBufferHoldsMemory(t *testing.T) {
	l.do(t, func(p *python) {
		o := p.eval("bytearray(4)")
		grow := func() error {
			_, err := p.CallMethod(o, "append", []py.Object{p.eval("1")}, nil)
			return err
		}
		err := p.Nested(func() error {
			if _, err := p.Buffer(o, py.BufferFull); err != nil {
				return err
			}
			p.wantRaised("append", grow(), "BufferError")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := grow(); err != nil {
			t.Errorf("after the scope: %v", err)
		}
	})
}

// capsule defines new(name) and seen, the names that capsules had when they were destroyed.
var capsule = []string{
	"import ctypes",
	"api = ctypes.pythonapi",
	"api.PyCapsule_New.restype = ctypes.py_object",
	"api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]",
	"name = b'dltensor'", // a capsule keeps the pointer
	"def new(): return api.PyCapsule_New(4096, name, None)",
	"nameless = api.PyCapsule_New(8192, None, None)",
}

func (l *library) testCapsules(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(capsule...)
		c := p.eval("new()")
		if !p.IsCapsule(c) {
			t.Error("a capsule is none")
		}
		if v, ok := p.Capsule(c, "dltensor"); v != 4096 || !ok {
			t.Errorf("pointer %d, %t", v, ok)
		}
		if name, ok := p.CapsuleName(c); name != "dltensor" || !ok {
			t.Errorf("name %q, %t", name, ok)
		}
		if err := p.SetCapsuleName(c, "used_dltensor"); err != nil {
			t.Error(err)
		}
		if name, ok := p.CapsuleName(c); name != "used_dltensor" || !ok {
			t.Errorf("name %q, %t", name, ok)
		}
		if _, ok := p.Capsule(c, "dltensor"); ok {
			t.Error("a renamed capsule still has its name")
		}
		nameless := p.eval("nameless")
		if name, ok := p.CapsuleName(nameless); ok {
			t.Errorf("no name is %q", name)
		}
		for _, o := range []py.Object{nameless, p.None(), p.eval("5")} {
			if v, ok := p.Capsule(o, "dltensor"); ok {
				t.Errorf("pointer %d", v)
			}
		}
		if name, ok := p.CapsuleName(p.eval("5")); ok {
			t.Errorf("name %q of what is no capsule", name)
		}
		p.wantRaised("SetCapsuleName", p.SetCapsuleName(p.eval("5"), "x"), "ValueError")
		if _, err := p.Len(p.eval("[]")); err != nil {
			t.Errorf("an exception was left behind: %v", err)
		}
	})
}

func (l *library) testDeleter(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("import ctypes", "called = []",
			"f = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(called.append)",
			"address = ctypes.cast(f, ctypes.c_void_p).value")
		address, err := p.Int64(p.eval("address"))
		if err != nil {
			panic(err)
		}
		p.CallDeleter(uintptr(address), 4096)
		if got, err := p.Repr(p.eval("called")); got != "[4096]" || err != nil {
			t.Errorf("called with %s, %v", got, err)
		}
	})
}
