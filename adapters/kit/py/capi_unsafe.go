package py

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "capi.h"
// #include "collect.h"
// #include "fields.h"
// #include "frames.h"
import "C"

import "unsafe"

// Object is a PyObject *: a reference to a Python object, valid as long as the scope that it belongs
// to. The zero Object is NULL and never a valid argument.
type Object uintptr

// threadState is what CPython keeps for one OS thread. The goroutine that uses one is locked to its
// thread.
type threadState struct {
	p  C.uintptr_t
	id C.ulong // by which Python knows the thread, once it has entered
}

func (t *threadState) enter() {
	t.know()
	C.ndpy_enter(t.p)
}

// know notes which thread this is.
func (t *threadState) know() {
	if t.id == 0 {
		t.id = C.ndpy_thread()
	}
}

func (t *threadState) leave() { t.p = C.ndpy_leave() }

// end has Python forget the thread, which does not hold the GIL.
func (t *threadState) end() {
	C.ndpy_end(t.p)
	t.p = 0
}

// forget lets the threading module know nothing of this thread, which holds the GIL.
func (*threadState) forget() { C.ndpy_forget_thread() }

// interrupt makes the thread raise an exception when it next runs Python code: SystemExit, if class is 0. calm takes back
// what was not raised yet. The caller holds the GIL.
func (t *threadState) interrupt(class Object) bool {
	if C.ndpy_thread_is_one(t.id) == 0 {
		return false
	}
	C.ndpy_interrupt(t.id, C.ndpy(class))
	return true
}

func (t *threadState) calm() { C.ndpy_calm(t.id) }

// What capiOpen gives besides success.
const (
	capiNoPython   = C.NDPY_NO_PYTHON
	capiNotRunning = C.NDPY_NOT_RUNNING
	capiTooOld     = C.NDPY_TOO_OLD
)

func capiOpen() (code int, missing string) {
	name := new(*C.char)
	code = int(C.ndpy_open(name))
	return code, C.GoString(*name)
}

// capiHoldCollection needs the GIL, and objects of the usual form.
func capiHoldCollection() { C.ndpy_hold_collection() }

func capiVersion() string { return C.GoString(C.ndpy_version()) }

// chars gives the bytes of s to a C function that takes a length and keeps no pointer.
func chars(s string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s))
}

func capiIncref(o Object) { C.ndpy_incref(C.ndpy(o)) }
func capiDecref(o Object) { C.ndpy_decref(C.ndpy(o)) }

func capiIncrefAll(o []Object) {
	C.ndpy_incref_all((*C.ndpy)(unsafe.Pointer(unsafe.SliceData(o))), C.size_t(len(o)))
}

func capiDecrefAll(o []Object) {
	C.ndpy_decref_all((*C.ndpy)(unsafe.Pointer(unsafe.SliceData(o))), C.size_t(len(o)))
}

func capiDecrefOnMain(o Object) { C.ndpy_decref_on_main(C.ndpy(o)) }

func capiNone() Object           { return Object(C.ndpy_none()) }
func capiTrue() Object           { return Object(C.ndpy_true()) }
func capiFalse() Object          { return Object(C.ndpy_false()) }
func capiCapsuleType() Object    { return Object(C.ndpy_capsule_type()) }
func capiAttributeError() Object { return Object(C.ndpy_attribute_error()) }

func capiMain() Object { return Object(C.ndpy_main()) }

func capiImport(name string) Object {
	p, n := chars(name)
	return Object(C.ndpy_import(p, n))
}

func capiLoaded(name string) Object {
	p, n := chars(name)
	return Object(C.ndpy_loaded(p, n))
}

func capiAttr(o Object, name string) Object {
	p, n := chars(name)
	return Object(C.ndpy_attr(C.ndpy(o), p, n))
}

func capiGet(o, name Object) Object { return Object(C.ndpy_get(C.ndpy(o), C.ndpy(name))) }

func capiGetBy(descriptor, o Object) Object {
	return Object(C.ndpy_get_by(C.ndpy(descriptor), C.ndpy(o)))
}

func capiCallC(f, o, other Object) Object {
	return Object(C.ndpy_call_c(C.ndpy(f), C.ndpy(o), C.ndpy(other)))
}

func capiModuleDict(module Object) Object { return Object(C.ndpy_module_dict(C.ndpy(module))) }

func capiDictGet(dict, key Object) Object { return Object(C.ndpy_dict_get(C.ndpy(dict), C.ndpy(key))) }

func capiClassHas(o, name Object) bool {
	return C.ndpy_object_has(C.ndpy(o), C.ndpy(name)) != 0
}
func capiClassGeneric(o Object) bool { return C.ndpy_class_generic(C.ndpy_class(C.ndpy(o))) != 0 }

// maxFields bounds how many fields of a class are told.
const maxFields = 256

func capiFields(class Object) []Object {
	var keys [maxFields]C.ndpy
	n := C.ndpy_fields(C.ndpy(class), &keys[0], maxFields)
	all := make([]Object, n)
	for i := range all {
		all[i] = Object(keys[i])
	}
	return all
}

func capiWaits(o Object) int    { return int(C.ndpy_waits(C.ndpy(o))) }
func capiHasDict(o Object) bool { return C.ndpy_dict_behind(C.ndpy(o)) != 0 }

// capiClassText gives what type writes of a class.
func capiClassText(class Object) string { return classText(class, C.ndpy_class_text(C.ndpy(class))) }

// capiTypeText gives the same of the class of o.
func capiTypeText(o Object) string {
	t := C.ndpy_type_text(C.ndpy(o))
	if t.text == nil {
		return capiClassText(Object(C.ndpy_class(C.ndpy(o))))
	}
	return classText(0, t)
}

func classText(class Object, t C.ndpy_text) string {
	if t.text == nil { // it has what UTF-8 cannot say, or is none
		return text(Object(C.ndpy_class_repr(C.ndpy(class))))
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(t.text)), int(t.len)))
}

func capiClassAttr(class Object, name string) Object {
	p, n := chars(name)
	return Object(C.ndpy_class_attr(C.ndpy(class), p, n))
}

func capiItem(o, key Object) Object     { return Object(C.ndpy_item(C.ndpy(o), C.ndpy(key))) }
func capiType(o Object) Object          { return Object(C.ndpy_type(C.ndpy(o))) }
func capiStr(o Object) Object           { return Object(C.ndpy_str(C.ndpy(o))) }
func capiRepr(o Object) Object          { return Object(C.ndpy_repr(C.ndpy(o))) }
func capiLen(o Object) int              { return int(C.ndpy_len(C.ndpy(o))) }
func capiTruth(o Object) int            { return int(C.ndpy_truth(C.ndpy(o))) }
func capiSubtype(t, base Object) bool   { return C.ndpy_subtype(C.ndpy(t), C.ndpy(base)) != 0 }
func capiCallable(o Object) bool        { return C.ndpy_callable(C.ndpy(o)) != 0 }
func capiIs(o Object, flag uint64) bool { return C.ndpy_is(C.ndpy(o), C.ulong(flag)) != 0 }
func capiIndex(o Object) Object         { return Object(C.ndpy_index(C.ndpy(o))) }
func capiNewInt(v int64) Object         { return Object(C.ndpy_new_int(C.longlong(v))) }
func capiNewUint(v uint64) Object       { return Object(C.ndpy_new_uint(C.ulonglong(v))) }
func capiInt64(o Object) int64          { return int64(C.ndpy_int64(C.ndpy(o))) }
func capiAskAll(o Object, names []Object, to []uint64) bool {
	first := (*C.ndpy)(unsafe.Pointer(unsafe.SliceData(names)))
	return C.ndpy_ask_all(C.ndpy(o), first, C.size_t(len(names)), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(to)))) != 0
}

func capiUint64(o Object) uint64   { return uint64(C.ndpy_uint64(C.ndpy(o))) }
func capiFloat64(o Object) float64 { return float64(C.ndpy_float64(C.ndpy(o))) }
func capiTupleLen(t Object) int    { return int(C.ndpy_tuple_len(C.ndpy(t))) }
func capiTupleItem(t Object, i int) Object {
	return Object(C.ndpy_tuple_item(C.ndpy(t), C.ptrdiff_t(i)))
}
func capiListTuple(list Object) Object { return Object(C.ndpy_list_tuple(C.ndpy(list))) }

// capiDictNext gives what a dict has from a position on, and the next position; key is 0 at the end.
func capiDictNext(dict Object, at int) (key, value Object, next int) {
	position := C.ptrdiff_t(at)
	var k, v C.ndpy
	behind := C.ndpy_dict_behind(C.ndpy(dict))
	if behind == 0 || C.ndpy_dict_next(behind, &position, &k, &v) == 0 {
		return 0, 0, at
	}
	return Object(k), Object(v), int(position)
}

// capiDictByObject gives what a dict has under an object.
func capiDictByObject(dict, key Object) Object {
	behind := C.ndpy_dict_behind(C.ndpy(dict))
	if behind == 0 {
		return 0
	}
	return Object(C.ndpy_dict_by_object(behind, C.ndpy(key)))
}

func capiOwnDict(o Object) Object { return Object(C.ndpy_own_dict(C.ndpy(o))) }

func capiSequenceGet(o Object, index int) Object {
	return Object(C.ndpy_sequence_get(C.ndpy(o), C.ptrdiff_t(index)))
}

func capiDictItems(dict Object) Object { return Object(C.ndpy_dict_items(C.ndpy(dict))) }
func capiNewDict() Object              { return Object(C.ndpy_new_dict()) }

func capiCall(f, args, kw Object) Object {
	return Object(C.ndpy_call(C.ndpy(f), C.ndpy(args), C.ndpy(kw)))
}

func capiCallOnce(f, args, kw Object, blocked *uint64) Object {
	return Object(C.ndpy_call_once(C.ndpy(f), C.ndpy(args), C.ndpy(kw), (*C.uint64_t)(unsafe.Pointer(blocked))))
}

func capiDictSet(dict, key, value Object) int {
	return int(C.ndpy_dict_set(C.ndpy(dict), C.ndpy(key), C.ndpy(value)))
}

func capiNewStr(s string) Object {
	p, n := chars(s)
	return Object(C.ndpy_new_str(p, n))
}

func capiNewTuple(items []Object) Object {
	first := (*C.ndpy)(unsafe.Pointer(unsafe.SliceData(items)))
	return Object(C.ndpy_new_tuple(first, C.ptrdiff_t(len(items))))
}

// capiUTF8 gives the text of a str. It reports false, with the error indicator set, if o is none, or one that UTF-8 cannot say.
func capiUTF8(o Object) (string, bool) {
	n := new(C.ptrdiff_t)
	p := C.ndpy_utf8(C.ndpy(o), n)
	if p == nil {
		return "", false
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(p)), int(*n))), true
}

// capiText gives the text of a str. It reports false, with the error indicator set, if o is none.
func capiText(o Object) (string, bool) {
	if s, ok := capiUTF8(o); ok {
		return s, true
	}
	if !capiIs(o, flagStr) {
		return "", false
	}
	capiClear() // it has what UTF-8 cannot say
	p, n := new(*C.char), new(C.ptrdiff_t)
	bytes := C.ndpy_encode(C.ndpy(o))
	if bytes == 0 {
		return "", false
	}
	defer C.ndpy_decref(bytes)
	if C.ndpy_bytes(bytes, p, n) < 0 {
		return "", false
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(*p)), int(*n))), true
}

func capiFailed() bool               { return C.ndpy_failed() != 0 }
func capiFailedWith(cls Object) bool { return C.ndpy_failed_with(C.ndpy(cls)) != 0 }
func capiClear()                     { C.ndpy_clear() }

func capiFetch() (t, v, traceback Object) {
	var a, b, c C.ndpy
	C.ndpy_fetch(&a, &b, &c)
	return Object(a), Object(b), Object(c)
}

func capiFailedToEnd() bool            { return C.ndpy_failed_to_end() != 0 }
func capiThrow(t, v, traceback Object) { C.ndpy_throw(C.ndpy(t), C.ndpy(v), C.ndpy(traceback)) }

func capiRestoreCollection() { C.ndpy_collect_restore() }

func capiRaise(t Object, text string) {
	p, n := chars(text)
	C.ndpy_raise(C.ndpy(t), p, n)
}

func capiCallDeleter(function, argument uintptr) {
	C.ndpy_call_deleter(C.uintptr_t(function), C.uintptr_t(argument))
}

func capiCallExporter(function uintptr, o Object) (made uintptr, r int) {
	var p C.uintptr_t
	r = int(C.ndpy_call_exporter(C.uintptr_t(function), C.ndpy(o), &p))
	return uintptr(p), r
}

// cName is a C string that is never freed: a capsule keeps the pointer to its name.
type cName struct{ p *C.char }

func newCName(name string) cName { return cName{C.CString(name)} }

func capiCapsule(o Object, name cName) uintptr { return uintptr(C.ndpy_capsule(C.ndpy(o), name.p)) }

func capiCapsuleName(o Object) (string, bool) {
	p := C.ndpy_capsule_name(C.ndpy(o))
	return C.GoString(p), p != nil
}

func capiCapsuleRename(o Object, name cName) int {
	return int(C.ndpy_capsule_rename(C.ndpy(o), name.p))
}

// rawBuffer is a Py_buffer. It lies in C memory, because its exporter may remember where it is.
type rawBuffer struct{ p *C.ndpy_buffer }

// capiBuffer gives a buffer with a nil pointer, and the error indicator set, if o refuses.
func capiBuffer(o Object, flags int) rawBuffer {
	p := (*C.ndpy_buffer)(C.calloc(1, C.sizeof_ndpy_buffer))
	if C.ndpy_get_buffer(C.ndpy(o), p, C.int(flags)) < 0 {
		C.free(unsafe.Pointer(p))
		return rawBuffer{}
	}
	return rawBuffer{p}
}

func (b rawBuffer) release() {
	C.ndpy_release_buffer(b.p)
	C.free(unsafe.Pointer(b.p))
}

func (b rawBuffer) fill(to *Buffer) {
	n := int(b.p.ndim)
	to.Addr = uintptr(b.p.buf)
	to.Len = int(b.p.len)
	to.ItemSize = int(b.p.itemsize)
	to.ReadOnly = b.p.readonly != 0
	to.Format = C.GoString(b.p.format)
	to.Rank = n
	to.Shape = extents(b.p.shape, n)
	to.Strides = extents(b.p.strides, n)
	to.Indirect = b.p.suboffsets != nil
}

// extents copies one of the arrays of a Py_buffer; absent ones stay nil.
func extents(p *C.ptrdiff_t, n int) []int {
	if p == nil || n <= 0 {
		return nil
	}
	out := make([]int, n)
	for i, v := range unsafe.Slice(p, n) {
		out[i] = int(v)
	}
	return out
}
