package py

// #include "glance.h"
import "C"

import (
	"strings"
	"sync/atomic"
	"unsafe"
)

// Marks says by what an object is known again, with as little work as that takes. What is zero does not
// count.
type Marks struct {
	Class  Object      // its type, exactly; always set
	Itself bool        // it is that very object
	Struct StructMarks // where its C struct describes an array
	Tensor uintptr     // int (*)(PyObject *, DLTensor *): DLPack's function that describes it without export

	// Attributes and Methods without arguments give objects that are never freed, such as True, and are told
	// apart by identity. There are at most [MaxMarks] of each.
	Attributes, Methods []string
	// Numbers are attributes, or attributes of those after a dot, that are an int or a tuple of ints. There
	// are at most [MaxMarks], and none beside a struct.
	Numbers []string
}

// StructMarks are the offsets in an object's C struct of what describes an array, in a Python whose objects
// begin with two words; in others there are no such marks.
type StructMarks struct {
	Data           uint32 // the pointer to its elements; 0: there is no such struct
	Rank           uint32 // an int
	Shape, Strides uint32 // pointers to as many intptr_t
	Object         uint32 // a PyObject *
	Flags          uint32 // an int
}

// MaxMarks bounds the attributes, and the methods, by which an object is known again.
const MaxMarks = C.NDPY_MARKS

// Glance is what an object was found to be.
type Glance struct {
	marks Marks
	c     *C.ndpy_glance // without pointers into Go
}

// Look takes a glance at o; ok is false if it is not of the class, or does not have the marks. No fork of
// the process is under way then.
func (g *GIL) Look(o Object, marks *Marks) (seen *Glance, ok bool, err error) {
	if marks.Struct != (StructMarks{}) && !g.interp.usual {
		return nil, false, nil
	}
	c := &C.ndpy_glance{marks: C.ndpy_marks{
		_type:   C.ndpy(marks.Class),
		data:    C.uint32_t(marks.Struct.Data),
		rank:    C.uint32_t(marks.Struct.Rank),
		shape:   C.uint32_t(marks.Struct.Shape),
		object:  C.uint32_t(marks.Struct.Object),
		flags:   C.uint32_t(marks.Struct.Flags),
		strides: C.uint32_t(marks.Struct.Strides),
		tensor:  C.uintptr_t(marks.Tensor),
	}}
	if marks.Itself {
		c.marks.itself = 1
	}
	if err := g.intern(c.marks.attributes[:], marks.Attributes); err != nil {
		return nil, false, err
	}
	if err := g.intern(c.marks.methods[:], marks.Methods); err != nil {
		return nil, false, err
	}
	for i, path := range marks.Numbers {
		if err := g.intern(c.marks.numbers[i][:], strings.SplitN(path, ".", 2)); err != nil {
			return nil, false, err
		}
	}
	if C.ndpy_look(C.ndpy(o), c) == 0 {
		return nil, false, nil
	}
	return &Glance{marks: *marks, c: c}, true, nil
}

func (g *GIL) intern(to []C.ndpy, names []string) error {
	for i, name := range names {
		o, err := g.Interned(name)
		if err != nil {
			return err
		}
		to[i] = C.ndpy(o)
	}
	return nil
}

// Same reports whether a glance at o would be the same again, and the process has not forked since. What a
// glance tells apart by address (the object itself, and the one in its struct) must have been kept.
func (g *GIL) Same(o Object, seen *Glance) bool { return C.ndpy_same(C.ndpy(o), seen.c) != 0 }

// Describes reports whether an array that was seen, if one was, is this one, of which a protocol has told:
// a struct may be another than it is taken for. Strides are in bytes.
func (s *Glance) Describes(addr uintptr, shape, strides []int, itemSize int) bool {
	if s.marks.Struct.Data == 0 && s.marks.Tensor == 0 {
		return true
	}
	words, unit := s.c.words[:s.c.count], 1
	if s.marks.Itself {
		words = words[1:]
	}
	if s.marks.Tensor != 0 {
		unit = itemSize
	}
	rank := len(shape)
	if words[0] != C.uint64_t(addr) || words[1] != C.uint64_t(rank) {
		return false
	}
	for axis, n := range shape {
		stride := int(words[2+rank+axis]) * unit
		if int(words[2+axis]) != n || n > 1 && stride != strides[axis] {
			return false
		}
	}
	return true
}

// Object gives the object that was found in the struct, or 0.
func (s *Glance) Object() Object {
	if s.marks.Struct.Object == 0 {
		return 0
	}
	return Object(s.c.words[s.c.count-2-C.size_t(len(s.marks.Attributes)+len(s.marks.Methods))])
}

// Itself gives the object, if that very object was looked at, or 0.
func (s *Glance) Itself() Object {
	if !s.marks.Itself {
		return 0
	}
	return Object(s.c.words[0])
}

// capiSameGlobal enters Python on the thread of state, which has been in it before, unless it holds the GIL.
// holds says whether it does afterwards.
func capiSameGlobal(state *threadState, held bool, shut *atomic.Uint32, name Object, seen *Glance) (same, holds bool) {
	in := C.int(0)
	if held {
		in = 1
	}
	out := C.ndpy_same_global(state.p, in, (*C.uint32_t)(unsafe.Pointer(shut)), C.ndpy(name), seen.c)
	return out&1 != 0, out&2 != 0
}

func capiNewInterned(s string) Object {
	p, n := chars(s)
	return Object(C.ndpy_new_interned(p, n))
}
