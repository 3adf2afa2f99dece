package py

// #include "frames.h"
import "C"

// pyThread is a thread of Python's. It stays as long as the GIL is held.
type pyThread C.uintptr_t

func capiOpenFrames() bool { return C.ndpy_open_frames() != 0 }

// capiThreads gives Python's threads, newest first.
func capiThreads() (all []pyThread) {
	for t := C.ndpy_first_thread(); t != 0; t = C.ndpy_next_thread(t) {
		all = append(all, pyThread(t))
	}
	return all
}

func (t pyThread) ident() uint64 { return uint64(C.ndpy_thread_ident(C.uintptr_t(t))) }
func (t pyThread) frame() Object { return Object(C.ndpy_thread_frame(C.uintptr_t(t))) }

func capiFrameBack(frame Object) Object    { return Object(C.ndpy_frame_back(C.ndpy(frame))) }
func capiFrameCode(frame Object) Object    { return Object(C.ndpy_frame_code(C.ndpy(frame))) }
func capiFrameGlobals(frame Object) Object { return Object(C.ndpy_frame_globals(C.ndpy(frame))) }
func capiFrameSpace(frame Object) Object   { return Object(C.ndpy_frame_space(C.ndpy(frame))) }

func capiSteady(name Object) bool { return C.ndpy_steady(C.ndpy(name)) != 0 }

func capiFrameLocal(frame, code, name Object) Object {
	return Object(C.ndpy_frame_local(C.ndpy(frame), C.ndpy(code), C.ndpy(name)))
}

func capiFunctionCode(function Object) Object { return Object(C.ndpy_function_code(C.ndpy(function))) }

func capiFunctionGlobals(function Object) Object {
	return Object(C.ndpy_function_globals(C.ndpy(function)))
}

func capiClassGet(class, name Object) Object {
	return Object(C.ndpy_class_get(C.ndpy(class), C.ndpy(name)))
}
