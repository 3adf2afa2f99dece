package py

// #include "fingerprint.h"
import "C"

import (
	"slices"
	"unsafe"
)

// Likeness tells which objects of a class are alike: have the same marks, but for where their elements lie. The class must live as long as it.
type Likeness struct {
	c    C.ndpy_marks
	part bool // the marks are a struct that leads to an object
}

// Likeness gives one for objects with these marks. ok is false if they are not of arrays, or to look at them may give back the GIL.
func (g *GIL) Likeness(marks *Marks) (l *Likeness, ok bool) {
	isArray := marks.Tensor != 0 || marks.Struct.Data != 0 && g.interp.usual
	if !isArray || marks.Itself || len(marks.Methods)+len(marks.Numbers) > 0 || marks.Interface != "" {
		return nil, false
	}
	c, err := g.cMarks(marks)
	return &Likeness{c, marks.Struct.Object != 0}, err == nil
}

// Equal reports whether two objects are recognised by the same.
func (m *Marks) Equal(other *Marks) bool {
	return m.Class == other.Class && m.Itself == other.Itself && m.Struct == other.Struct && m.Tensor == other.Tensor && m.Behind == other.Behind &&
		slices.Equal(m.Attributes, other.Attributes) && slices.Equal(m.Methods, other.Methods) && slices.Equal(m.Numbers, other.Numbers) &&
		m.Interface == other.Interface
}

// lookMemory is memory of [GIL.Look].
type lookMemory []C.uint64_t

// Sight is what was seen of an object. It is valid until the next call of [GIL.Look].
type Sight struct {
	words lookMemory
	of    *Likeness
}

// Look looks at an object without running Python code. ok is false if it has not the marks.
func (g *GIL) Look(l *Likeness, o Object) (s Sight, ok bool) {
	if g.words == nil {
		g.words = make(lookMemory, maxWords)
	}
	n := C.ndpy_words(&l.c, C.ndpy(o), &g.words[0], maxWords)
	return Sight{g.words[:max(n, 0)], l}, n > 0
}

// Addr is where the elements lie.
func (s Sight) Addr() uintptr { return uintptr(s.words[0]) }

// Kind is the same for all objects that are alike, as long as Part lives.
func (s Sight) Kind() []byte {
	rest := s.words[1:]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rest))), len(rest)*int(unsafe.Sizeof(rest[0])))
}

// Part is the object to which the struct leads, borrowed, or 0.
func (s Sight) Part() Object {
	if !s.of.part {
		return 0
	}
	return Object(s.words[len(s.words)-2-int(s.of.c.attribute_count)])
}

// Describes reports whether an array of which a protocol has told is what was seen, as [Watch.Describes] does.
func (s Sight) Describes(addr uintptr, shape, strides []int, itemSize int) bool {
	unit := 1
	if s.of.c.tensor != 0 {
		unit = itemSize
	}
	return describes(s.words, unit, addr, shape, strides)
}
