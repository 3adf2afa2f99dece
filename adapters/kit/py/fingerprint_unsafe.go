package py

// #include "fingerprint.h"
import "C"

import (
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// Marks says by what an object is recognised, with as little work as that takes. What is zero does not
// count.
type Marks struct {
	Class  Object      // its type, exactly; always set
	Itself bool        // it is that very object
	Struct StructMarks // where its C struct describes an array
	Tensor uintptr     // int (*)(PyObject *, DLTensor *): DLPack's function that describes it without export
	Behind BehindMark  // a word that its C struct leads to

	// Attributes and Methods without arguments give objects that are never freed, such as True, and are told
	// apart by identity. There are at most [MaxMarks] of each.
	Attributes, Methods []string
	// Numbers are attributes, or attributes of those after a dot, that are an int or a tuple of ints. There
	// are at most [MaxMarks], and none beside a struct.
	Numbers []string
	// Interface is an attribute that is a dict, as those of the array interfaces, of None, short texts, ints and tuples of
	// ints. What is in it counts, and where its "data" says that the elements lie. There is none beside a struct.
	Interface string
}

// StructMarks are the offsets in an object's C struct of what describes an array, in a Python whose objects
// begin with two words; in others there are no such marks.
type StructMarks struct {
	Data           uint32 // the pointer to its elements; 0: there is no such struct
	Rank           uint32 // an int
	Shape, Strides uint32 // pointers to as many intptr_t
	Object         uint32 // a PyObject *
	Flags          uint32 // an int
	Owned          uint32 // flags of which each says that the elements stay while the GIL is held
}

// BehindMark is a word in what an object's C struct points to.
type BehindMark struct {
	Pointer uint32 // where the struct has the pointer; 0: there is none
	Word    uint32 // where the word is, from what the pointer points to
}

// MaxMarks bounds the attributes, and the methods, by which an object is recognised.
const MaxMarks = C.NDPY_MARKS

// Step is how one object leads to another without running code of the program's.
type Step struct {
	Kind       StepKind
	Class      Object   // of the object that is asked, exactly
	Key        Object   // a str for attributes and globals; for items the key
	Index      int      // of StepIndex and StepBeside
	Expected   Object   // of StepBeside
	Registries []string // of StepRegistered and StepRegisteredItem; of StepGetter: getters of which one must give True, or none
	Unless     Object   // of StepGetter: the name of [GIL.Steady], or 0
}

// StepKind says how an object is asked.
type StepKind int

// The kinds.
const (
	StepAttribute  StepKind = C.NDPY_ATTRIBUTE  // o.__dict__[key], or a field ([GIL.Fields]), where the class has no other such attribute
	StepGlobal     StepKind = C.NDPY_GLOBAL     // a module's global variable
	StepKey        StepKind = C.NDPY_KEY        // an item of a dict, or of a mapping proxy of one
	StepIndex      StepKind = C.NDPY_INDEX      // a list's, a tuple's or a deque's item
	StepRegistered StepKind = C.NDPY_REGISTERED // as StepAttribute, or else as StepRegisteredItem

	StepGetter StepKind = C.NDPY_GETTER // what a field, or a getter in C of the class, gives: no code of the program's

	// StepBeside: the object itself, if what the getter gives for the key is Expected; or the item of that with the index, if
	// Index is not negative. So a way that was found by something is none any more when that has changed.
	StepBeside StepKind = C.NDPY_BESIDE

	// StepRegisteredItem: in the first of the registries, dicts in o.__dict__, that has it.
	StepRegisteredItem StepKind = C.NDPY_REGISTERED_ITEM

	// StepLocal: a variable of a generator or the like, as [GIL.Waits] knows them, whether it runs or waits.
	StepLocal StepKind = C.NDPY_LOCAL
)

// MaxSteps bounds the steps of a Watch.
const MaxSteps = C.NDPY_STEPS

// checkMemory is memory of [Thread.Check].
type checkMemory []C.ndpy_check

// Watch is a name that led to an array, and that array's fingerprint: what shows that it is what it was. It
// holds references until Drop.
type Watch struct {
	marks Marks
	c     C.ndpy_watch // which C reads by the address, as the next two
	steps []C.ndpy_step
	words []C.uint64_t
	held  []Object
	under *Watch
}

// Watch begins to watch what the steps lead to from base, or, if that is 0, from the dict of the program's
// global variables. ok is false if they do not lead to o, or if o does not have the marks. base must live as
// long as the watch.
func (g *GIL) Watch(base Object, steps []Step, marks *Marks, o Object) (w *Watch, ok bool, err error) {
	if len(steps) > MaxSteps || marks.Struct != (StructMarks{}) && !g.interp.usual {
		return nil, false, nil
	}
	w = &Watch{marks: *marks, c: C.ndpy_watch{base: C.ndpy(base), marks: C.ndpy_marks{
		_type:   C.ndpy(marks.Class),
		data:    C.uint32_t(marks.Struct.Data),
		rank:    C.uint32_t(marks.Struct.Rank),
		shape:   C.uint32_t(marks.Struct.Shape),
		object:  C.uint32_t(marks.Struct.Object),
		flags:   C.uint32_t(marks.Struct.Flags),
		owned:   C.uint32_t(marks.Struct.Owned),
		strides: C.uint32_t(marks.Struct.Strides),
		pointer: C.uint32_t(marks.Behind.Pointer),
		behind:  C.uint32_t(marks.Behind.Word),
		tensor:  C.uintptr_t(marks.Tensor),

		attribute_count: C.uint8_t(len(marks.Attributes)),
		method_count:    C.uint8_t(len(marks.Methods)),
		number_count:    C.uint8_t(len(marks.Numbers)),
	}}}
	c := &w.c
	if marks.Itself {
		c.marks.itself = 1
	}
	for _, names := range []struct {
		to   []C.ndpy
		from []string
	}{{c.marks.attributes[:], marks.Attributes}, {c.marks.methods[:], marks.Methods}} {
		if err := g.intern(names.to, names.from); err != nil {
			return nil, false, err
		}
	}
	if marks.Interface != "" {
		if err := g.intern(unsafe.Slice(&c.marks.dict, 1), []string{marks.Interface}); err != nil {
			return nil, false, err
		}
	}
	for i, path := range marks.Numbers {
		if err := g.intern(c.marks.numbers[i][:], strings.SplitN(path, ".", 2)); err != nil {
			return nil, false, err
		}
	}
	w.steps = make([]C.ndpy_step, len(steps))
	for i, s := range steps {
		if err := g.fillStep(&w.steps[i], s); err != nil {
			return nil, false, err
		}
	}
	c.steps, c.count = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(w.steps)))), C.int(len(steps))
	var words [maxWords]C.uint64_t
	if C.ndpy_watch_begin(c, C.ndpy(o), &words[0]) == 0 {
		return nil, false, nil
	}
	w.remember(slices.Clone(words[:c.length]))
	w.hold(steps, o)
	return w, true, nil
}

const maxWords = C.NDPY_WORDS

// remember makes words the fingerprint.
func (w *Watch) remember(words []C.uint64_t) {
	w.words = words
	w.c.length, w.c.words = C.size_t(len(words)), C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(words))))
}

// hold takes references to all that is compared by its address: weak ones to classes and their functions, which may
// end as if nobody looked.
func (w *Watch) hold(steps []Step, o Object) {
	w.held = append(make([]Object, 0, len(steps)+4), w.object())
	for _, s := range steps {
		w.held = append(w.held, s.Key, s.Unless)
	}
	if w.marks.Itself {
		w.held = append(w.held, o)
	}
	capiIncrefAll(w.held)
	w.holdWeakly(w.c.marks._type, &w.c.marks.weak)
	for i := range w.steps {
		w.holdWeakly(w.steps[i].expected, &w.steps[i].weak_expected)
		a := &w.steps[i].asked
		w.holdWeakly(a._type, &a.weak)
		for i, hook := range a.hooks {
			w.holdWeakly(hook, &a.weak_hooks[i])
		}
	}
}

func (w *Watch) holdWeakly(o C.ndpy, weak *C.ndpy) {
	if o == 0 {
		return
	}
	if *weak = C.ndpy_weak(o); *weak == 0 { // it can have none
		C.ndpy_incref(o)
		w.held = append(w.held, Object(o))
		return
	}
	w.held = append(w.held, Object(*weak))
}

// Under makes w one that says of nothing that it is the same once another watch was dropped: that of who holds w's
// base, which may be gone then.
func (w *Watch) Under(other *Watch) {
	w.under, w.c.under = other, C.uintptr_t(uintptr(unsafe.Pointer(&other.c)))
}

// Drop ends the watch, which says of nothing that it is the same from then on. It is called once.
func (w *Watch) Drop(*GIL) {
	w.c.dead = 1
	capiDecrefAll(w.held)
}

// Follow gives what a step leads to from o, or false.
func (g *GIL) Follow(o Object, s Step) (Object, bool) {
	var c C.ndpy_step
	if g.fillStep(&c, s) != nil {
		return 0, false
	}
	next := Object(C.ndpy_follow(C.ndpy(o), &c))
	if next == 0 {
		return 0, false
	}
	return g.own(next), true
}

func (g *GIL) fillStep(to *C.ndpy_step, s Step) error {
	to.asked.kind, to.asked._type, to.key, to.index = C.int(s.Kind), C.ndpy(s.Class), C.ndpy(s.Key), C.ptrdiff_t(s.Index)
	to.expected, to.asked.unless = C.ndpy(s.Expected), C.ndpy(s.Unless)
	if s.Kind == StepRegistered || s.Kind == StepRegisteredItem {
		C.ndpy_hooks(to.asked._type, &to.asked.hooks[0])
	}
	return g.intern(to.asked.registries[:], s.Registries)
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

// Same reports whether the name leads to what it led to.
func (g *GIL) Same(w *Watch) bool {
	defer runtime.KeepAlive(w)
	return C.ndpy_watch_same(&w.c) != 0
}

// Itself reports whether only the very object is the same.
func (w *Watch) Itself() bool { return w.marks.Itself }

// fromEnd is where the words of the struct's object and flags begin.
func (w *Watch) fromEnd() int {
	return len(w.words) - 2 - len(w.marks.Attributes) - len(w.marks.Methods)
}

// object gives the object that was found in the struct, or 0.
func (w *Watch) object() Object {
	if w.marks.Struct.Object == 0 {
		return 0
	}
	return Object(w.words[w.fromEnd()])
}

// Describes reports whether an array that was seen, if one was, is this one, of which a protocol has told:
// a struct may be another than it is taken for. Strides are in bytes.
func (w *Watch) Describes(addr uintptr, shape, strides []int, itemSize int) bool {
	words, unit := w.words, 1
	if w.marks.Itself {
		words = words[1:]
	}
	switch {
	case w.marks.Interface != "":
		return dataOf(words) == C.uint64_t(addr)
	case w.marks.Struct.Data == 0 && w.marks.Tensor == 0:
		return true
	}
	if w.marks.Tensor != 0 {
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

// dataOf finds the address in the words of an interface, or 0.
func dataOf(words []C.uint64_t) (addr C.uint64_t) {
	const data = 'd' | 'a'<<8 | 't'<<16 | 'a'<<24
	for len(words) >= 3 && words[0] == 's' {
		key, value, size := words[1], words[2:], 2
		switch value[0] {
		case 'n':
			size = 1
		case 't':
			size = 2 + int(value[1])
			if key == data && value[1] > 0 {
				return value[2]
			}
		}
		words = value[size:]
	}
	return 0
}

// Moved begins to watch o if it differs from the watched object in nothing but where its elements lie, and
// says where that is. It is for objects with a struct, which are watched without steps.
func (g *GIL) Moved(w *Watch, o Object) (next *Watch, addr uintptr, ok bool) {
	defer runtime.KeepAlive(w)
	if w.marks.Struct.Data == 0 || len(w.steps) != 0 {
		return nil, 0, false
	}
	words := make([]C.uint64_t, len(w.words))
	if C.ndpy_watch_moved(&w.c, C.ndpy(o), &words[0]) == 0 {
		return nil, 0, false
	}
	next = &Watch{marks: w.marks, c: w.c}
	next.c.base = C.ndpy(o)
	next.remember(words)
	next.hold(nil, o)
	return next, uintptr(words[0]), true
}

// Check is what is asked of one watch, and the answer.
type Check struct {
	Watch *Watch
	Copy  Copy
	Same  bool // the answer
}

// Copy is memory to be copied if what is watched is the same, to memory that is not Go's. It is read apart, and shown
// only if the object still has it then. Memory that cannot be read makes the answer no. The zero value is none.
type Copy struct {
	From, To, Size uintptr // the size is at most MaxCopy
}

// MaxCopy is the size of the largest Copy.
const MaxCopy = C.NDPY_APART

// Check is [GIL.Same] of many watches, on a thread of the caller's, with one hold of the GIL, in which it also
// copies. After Shut nothing is the same.
func (t *Thread) Check(checks []Check) {
	for i := range checks {
		checks[i].Same = false
	}
	if t.state.p == 0 || !t.interp.enter() {
		return
	}
	defer t.interp.exit()
	t.checks = t.checks[:0]
	for _, c := range checks {
		t.checks = append(t.checks, C.ndpy_check{
			watch: C.uintptr_t(uintptr(unsafe.Pointer(&c.Watch.c))), from: C.uintptr_t(c.Copy.From),
			to: C.uintptr_t(c.Copy.To), size: C.size_t(c.Copy.Size),
		})
	}
	C.ndpy_check_all(t.state.p, (*C.uint32_t)(unsafe.Pointer(t.interp.ending)), unsafe.SliceData(t.checks), C.size_t(len(checks)))
	runtime.KeepAlive(checks)
	for i, c := range t.checks {
		checks[i].Same = c.same != 0
	}
}

func capiNewInterned(s string) Object {
	p, n := chars(s)
	return Object(C.ndpy_new_interned(p, n))
}
