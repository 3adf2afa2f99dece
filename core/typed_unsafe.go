package core

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"unsafe"
)

// A need is what a typed access asks of a view beyond the right element type.
type need uint8

const (
	dense   need = 1 << iota // row-major without gaps
	rows                     // dense along the innermost axis
	aligned                  // every element where the machine wants it
	write                    // the memory may be written
)

// Slice returns the elements of v in row-major order as a slice that aliases the memory. Nothing is copied, and what
// the program writes appears in the slice. The slice dies with v.Close: touching it afterwards may fault.
// Writing to it faults unless v.Writable.
//
// T must be the element type of v (ErrDType), the host must be able to read the memory (ErrDevice), and the elements
// must be contiguous and aligned (ErrLayout: use [Values], [Strided] or [Copy]). Bytes other than 0 and 1 in a []bool
// make Go programs misbehave. No framework writes them on its own; read bytes of doubtful origin through [View.As]
// with Uint8.
//
// If a file behind the memory is truncated, touching the slice faults (SIGBUS), as with any mapping of a file. Copy
// returns an error then.
func Slice[T Element](v *View) ([]T, error) {
	if err := check[T](v, "slice", dense|aligned); err != nil {
		return nil, err
	}
	if v.n == 0 {
		return []T{}, nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&v.root.bytes[v.offset])), v.n), nil
}

// Strided gives the memory that the elements of v span as a slice, and says where they lie in it: the element
// with index [i, j] is data[offset + i*strides[0] + j*strides[1]]. It is Slice for crops and transposed views,
// without a copy; libraries that take a stride for each axis, as BLAS does, can use it. The offset is 0 unless
// a stride is negative.
//
// The rules of [Slice] hold. Between the elements of v, data may have others of the same memory: do not write
// to those. The distance between elements must be a multiple of their size (ErrLayout).
func Strided[T Element](v *View) (data []T, offset int, strides []int, err error) {
	if err := check[T](v, "strided", aligned); err != nil {
		return nil, 0, nil, err
	}
	size := v.dtype.Size()
	strides = make([]int, len(v.strides))
	for axis, stride := range v.strides {
		if stride%size != 0 && v.shape[axis] > 1 && v.n > 0 {
			e := v.fail("strided", ErrLayout, fmt.Errorf("stride %d of axis %d is no multiple of %d bytes", stride, axis, size))
			e.Remedy = "use Values or Copy"
			return nil, 0, nil, e
		}
		strides[axis] = stride / size
	}
	if v.n == 0 {
		return []T{}, 0, strides, nil
	}
	data = unsafe.Slice((*T)(unsafe.Pointer(&v.root.bytes[v.lo])), (v.hi-v.lo)/size)
	return data, (v.offset - v.lo) / size, strides, nil
}

// Values returns an iterator over the elements of v in row-major order, whatever the strides. While a loop runs, the
// memory stays, even if v is closed meanwhile. To begin a loop after v was closed is a mistake in the program: it
// panics with an error that wraps ErrClosed.
//
// T must be the element type of v (ErrDType), and the host must be able to read the memory (ErrDevice).
func Values[T Element](v *View) (iter.Seq[T], error) {
	if err := check[T](v, "values", 0); err != nil {
		return nil, err
	}
	return func(yield func(T) bool) {
		r, err := v.hold("values")
		if err != nil {
			panic(err)
		}
		defer r.drop()
		run := v.innermost()
		for offset := range v.runs() {
			for range run.n {
				if !yield(load[T](r.bytes, offset)) {
					return
				}
				offset += run.stride
			}
		}
	}, nil
}

// Rows returns an iterator over the innermost runs of v, numbered from 0 in row-major order, as slices that alias
// the memory. The rules of [Slice] hold. A view of rank 0 has one row of one element. While a loop runs, the memory
// stays, even if v is closed meanwhile. To begin a loop after v was closed panics, as with [Values].
//
// Only the innermost axis must be dense, and all elements must be aligned (ErrLayout).
func Rows[T Element](v *View) (iter.Seq2[int, []T], error) {
	if err := check[T](v, "rows", rows|aligned); err != nil {
		return nil, err
	}
	return func(yield func(int, []T) bool) {
		r, err := v.hold("rows")
		if err != nil {
			panic(err)
		}
		defer r.drop()
		n, row := v.innermost().n, 0
		for offset := range v.runs() {
			if !yield(row, unsafe.Slice((*T)(unsafe.Pointer(&r.bytes[offset])), n)) {
				return
			}
			row++
		}
	}, nil
}

// At reads one element. It takes one index for each axis of v (ErrLayout). T must be the element type of v (ErrDType),
// and the host must be able to read the memory (ErrDevice). If the memory is gone because the file behind it was
// truncated, the error wraps ErrPointer.
func At[T Element](v *View, index ...int) (x T, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if err := check[T](v, "at", 0); err != nil {
		return x, err
	}
	offset, err := v.Index(index...)
	if err != nil {
		return x, v.wrap("at", err)
	}
	defer v.trap("at", debug.SetPanicOnFault(true), &err)
	return load[T](v.root.bytes, offset), nil
}

// Set writes one element. It is At for writing: the view must be writable (ErrReadOnly).
func Set[T Element](v *View, value T, index ...int) (err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if err := check[T](v, "set", write); err != nil {
		return err
	}
	offset, err := v.Index(index...)
	if err != nil {
		return v.wrap("set", err)
	}
	defer v.trap("set", debug.SetPanicOnFault(true), &err)
	store(v.root.bytes, offset, value)
	return nil
}

// Copy copies the elements of v, in row-major order and whatever the strides, to dst and returns their
// number. It copies from wherever the memory lies: the CPU copies what it can read, and a GPU's memory
// copies itself if it is a [Copier], as that of sessions is. Copy first waits until the memory may be touched,
// as [View.Wait] does, and returns when the copy is done.
//
// T must be the element type of v (ErrDType), and dst must have room for v.Len elements (ErrLayout). Memory
// that neither the CPU nor a Copier can copy is an error that wraps ErrDevice. Memory that is gone because
// the file behind it was truncated is an error that wraps ErrPointer, and memory of a program that is gone
// one that wraps ErrUnavailable. When ctx ends, Copy reports that as the context's error; a copy that the CPU
// has begun is not interrupted. After an error dst may be partly written.
func Copy[T Element](ctx context.Context, dst []T, v *View) (n int, err error) {
	if err := v.fits("copy", DTypeOf[T](), len(dst) < v.n, "room for %d elements of %d", len(dst)); err != nil {
		return 0, err
	}
	raw := rawBytes(dst[:v.n])
	if err := v.copyOut(ctx, raw); err != nil {
		return 0, err
	}
	if v.dtype == Bool {
		for i, b := range raw {
			raw[i] = min(b, 1) // a bool of another byte than 0 or 1 must not get into Go
		}
	}
	return v.n, nil
}

// Put copies src, in row-major order, over the elements of v, whatever its strides, and returns their
// number. It is [Copy] for writing: the view must be writable (ErrReadOnly), src must have exactly v.Len
// elements (ErrLayout), and after an error v may be partly written.
func Put[T Element](ctx context.Context, v *View, src []T) (n int, err error) {
	if err := v.fits("put", DTypeOf[T](), len(src) != v.n, "%d elements for %d", len(src)); err != nil {
		return 0, err
	}
	if v.n > 0 && !v.Writable() {
		return 0, v.notWritable("put")
	}
	if err := v.copyIn(ctx, rawBytes(src)); err != nil {
		return 0, err
	}
	return v.n, nil
}

// check is the one place that decides whether the elements of v may be taken for a T's. That they lie
// inside the memory was proven by NewView and holds for all that is derived from it.
func check[T Element](v *View, op string, need need) error {
	var zero T
	want := DTypeOf[T]()
	switch {
	case !v.open.Load():
		return v.fail(op, ErrClosed, nil)
	case v.dtype != want:
		return v.wrongType(op, want)
	case v.n == 0:
		return nil
	case v.root.bytes == nil:
		return v.unreadable(op)
	case need&dense != 0 && !v.contiguous:
		return v.notDense(op)
	case need&rows != 0 && !v.denseRows():
		return v.notDense(op)
	case need&aligned != 0 && !v.aligned(unsafe.Pointer(&v.root.bytes[v.offset]), unsafe.Alignof(zero)):
		return v.misaligned(op)
	case need&write != 0 && !v.Writable():
		return v.notWritable(op)
	}
	return nil
}

// aligned reports whether every element lies at a multiple of align.
func (v *View) aligned(first unsafe.Pointer, align uintptr) bool {
	all := uintptr(first)
	if !v.contiguous {
		for axis, dim := range v.shape {
			if dim > 1 {
				all |= uintptr(v.strides[axis])
			}
		}
	}
	return all&(align-1) == 0
}

// load reads the element at an offset, wherever it lies.
func load[T Element](b []byte, offset int) (x T) {
	p := unsafe.Pointer(&b[offset])
	if _, ok := any(x).(bool); ok {
		truth := *(*byte)(p) != 0 // a bool of another byte than 0 or 1 must not get into Go
		return *(*T)(unsafe.Pointer(&truth))
	}
	if uintptr(p)&(unsafe.Alignof(x)-1) == 0 {
		return *(*T)(p)
	}
	copyElement(unsafe.Slice((*byte)(unsafe.Pointer(&x)), unsafe.Sizeof(x)), b[offset:], int(unsafe.Sizeof(x)))
	return x
}

// store writes the element at an offset, wherever it lies.
func store[T Element](b []byte, offset int, x T) {
	copyElement(b[offset:], unsafe.Slice((*byte)(unsafe.Pointer(&x)), unsafe.Sizeof(x)), int(unsafe.Sizeof(x)))
}

// rawBytes is the memory of s.
func rawBytes[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// addrOf is the address of the first byte of b, which is not empty.
func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
