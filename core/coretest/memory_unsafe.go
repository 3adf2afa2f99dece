package coretest

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// Memory is a core.Memory of ordinary Go memory. It counts how often it was closed.
type Memory struct {
	bytes  []byte
	closed atomic.Int32
}

// NewMemory makes a Memory that aliases data.
func NewMemory[T core.Element](data []T) *Memory {
	m := &Memory{}
	if len(data) > 0 {
		m.bytes = unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
	}
	return m
}

// Bytes returns the memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Addr returns the address of the first byte, or 0 if there is none.
func (m *Memory) Addr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes))) }

// Size returns the number of bytes.
func (m *Memory) Size() int64 { return int64(len(m.bytes)) }

// Close counts its calls.
func (m *Memory) Close() error {
	m.closed.Add(1)
	return nil
}

// Closed returns how often Close was called.
func (m *Memory) Closed() int { return int(m.closed.Load()) }

// NewView makes a writable view that aliases data, as a row-major array of the given shape. Without a shape it has one
// axis. The test must close the view. If data does not have as many elements as the shape, the test fails.
func NewView[T core.Element](tb testing.TB, data []T, shape ...int) *core.View {
	tb.Helper()
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.DTypeOf[T](), Shape: shape})
	if err != nil {
		tb.Fatal(err)
	}
	if l.Len() != len(data) {
		tb.Fatalf("shape %v has %d elements, data has %d", shape, l.Len(), len(data))
	}
	v, err := core.NewView(l, NewMemory(data), &core.ViewOptions{Name: tb.Name(), Writable: true})
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// NewRawView makes a view of raw bytes that cannot be written, and that is closed when the test ends.
func NewRawView(tb testing.TB, raw []byte, s core.LayoutSpec) *core.View {
	tb.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := core.NewView(l, NewMemory(raw), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return closing(tb, v)
}

// Derive derives a view of v, and closes all of them when the test ends.
func Derive(tb testing.TB, v *core.View, derivations ...func(*core.View) (*core.View, error)) *core.View {
	tb.Helper()
	last := closing(tb, v)
	for _, derive := range derivations {
		next, err := derive(last)
		if err != nil {
			tb.Fatal(err)
		}
		last = closing(tb, next)
	}
	return last
}

// closing gives v, which is closed when the test ends.
func closing(tb testing.TB, v *core.View) *core.View {
	tb.Helper()
	tb.Cleanup(func() {
		if err := v.Close(); err != nil {
			tb.Error(err)
		}
	})
	return v
}

// Lender is a [core.Lender] whose views are live until they are closed. The function is called to end the lease.
type Lender func() error

// Live implements [core.Lender].
func (Lender) Live() bool { return true }

// Release implements [core.Lender].
func (l Lender) Release() error { return l() }
