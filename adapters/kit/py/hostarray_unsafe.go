package py

// #include "hostarray.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// HostMemory is a mapping of the host's memory in this process. All methods are safe for concurrent use.
type HostMemory struct {
	addr uintptr
	mu   sync.Mutex
	p    *C.ndpy_segment // nil: closed
}

// NewHostMemory takes over a mapping, as mmap made it: it is unmapped after Close, when no array in it is in use any
// more, with or without Python. Memory of size 0 is unmapped by the caller, when no array in it is in use.
func NewHostMemory(addr uintptr, size int64) *HostMemory {
	return &HostMemory{addr: addr, p: C.ndpy_new_segment(C.uintptr_t(addr), C.size_t(size))}
}

// Addr gives the address of the first byte.
func (m *HostMemory) Addr() uintptr { return m.addr }

// Arrays gives the number of arrays in the memory that are in use: those that a Python object or a tensor of DLPack stands
// for. It is 0 after Close.
func (m *HostMemory) Arrays() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p == nil {
		return 0
	}
	return int(C.ndpy_segment_arrays(m.p))
}

// CloseUnused is Close if no array in the memory is in use. Otherwise it reports false, and does nothing.
func (m *HostMemory) CloseUnused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p != nil && C.ndpy_segment_arrays(m.p) > 0 {
		return false
	}
	m.close()
	return true
}

// Close ends the memory for new arrays. It is idempotent.
func (m *HostMemory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close()
}

func (m *HostMemory) close() {
	if m.p != nil {
		C.ndpy_drop_segment(m.p)
		m.p = nil
	}
}

// Read gives a copy of n bytes that lie in the memory. The error wraps [core.ErrClosed].
func (m *HostMemory) Read(offset, n int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p == nil {
		return nil, &core.Error{Op: "read", Kind: core.ErrClosed}
	}
	b := make([]byte, n)
	C.ndpy_read_segment(C.uintptr_t(m.addr+uintptr(offset)), unsafe.Pointer(unsafe.SliceData(b)), C.size_t(n))
	return b, nil
}

// HostArray says how Python sees an array in a [HostMemory].
type HostArray struct {
	Layout   core.Layout // of unpacked elements; its span lies in the memory, and its device says which memory that is
	ReadOnly bool
	Format   string // of the buffer protocol; "": it has none for the elements
	Typestr  string // of the array interface
	// Held, if it is not nil, counts the arrays in use: those that a Python object or a tensor of DLPack stands for. It
	// lies in memory that stays mapped as long as there are any. A forked child does not change it.
	Held *atomic.Uint32
}

// NewHostArray makes an object of the type ndbridge.HostArray. It is an error that wraps [core.ErrClosed] if the memory
// was closed.
func (g *GIL) NewHostArray(m *HostMemory, a *HostArray) (Object, error) {
	if C.ndpy_open_host_arrays(C.size_t(g.interp.header)) < 0 {
		return 0, g.failure()
	}
	l, t := a.Layout, a.Layout.DType()
	is := C.ndpy_host_array{
		data: C.uintptr_t(m.addr + uintptr(l.Offset())), held: C.uintptr_t(uintptr(unsafe.Pointer(a.Held))),
		len: C.size_t(l.NBytes()), itemsize: C.size_t(t.Size()), typestr: g.interp.cName(a.Typestr).p,
		code: C.uint8_t(t.Code()), bits: C.uint8_t(t.Bits()), lanes: C.uint16_t(t.Lanes()),
	}
	is.gpu = -1
	if l.Device().Kind == core.CUDA {
		is.gpu = C.int(l.Device().Index)
	}
	if a.Format != "" {
		is.format = g.interp.cName(a.Format).p
	}
	if a.ReadOnly {
		is.readonly = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if is.segment = m.p; is.segment == nil {
		return 0, &core.Error{Op: "export", Kind: core.ErrClosed}
	}
	shape, strides := extentsOf(l.Shape()), extentsOf(l.Strides())
	o := C.ndpy_new_host_array(&is, C.int(l.Rank()), shape, strides)
	return g.take(Object(o))
}

// HostArrayCapsule gives DLPack's capsule of an object that NewHostArray made, also where its __dlpack__ refuses:
// one that is not versioned does not say that the memory is read-only.
func (g *GIL) HostArrayCapsule(o Object, versioned bool) (Object, error) {
	with := C.int(0)
	if versioned {
		with = 1
	}
	return g.take(Object(C.ndpy_host_array_capsule(C.ndpy(o), with)))
}

// HostArrayUnsigned lets the __dlpack__ of an object that NewHostArray made give capsules that do not say that the memory
// is read-only: for consumers that never write, and do not understand others.
func (g *GIL) HostArrayUnsigned(o Object) { C.ndpy_host_array_unsigned(C.ndpy(o)) }

// NewInts makes a tuple of ints.
func (g *GIL) NewInts(v []int) (Object, error) {
	return g.take(Object(C.ndpy_new_ints(extentsOf(v), C.int(len(v)))))
}

func extentsOf(v []int) *C.ptrdiff_t { return (*C.ptrdiff_t)(unsafe.Pointer(unsafe.SliceData(v))) }
