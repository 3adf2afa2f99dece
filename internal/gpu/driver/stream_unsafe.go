//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// StreamCreate creates a stream in the current context that does not synchronize with the default
// stream.
func StreamCreate() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return *(*Stream)(unsafe.Pointer(&s)), failed("cuStreamCreate", err)
}

// StreamDestroy destroys a stream. The device still does its work.
func StreamDestroy(s Stream) error {
	stream := s.cu()
	return failed("cuStreamDestroy", stream.Destroy())
}

// StreamSynchronize waits for all work of the stream.
func StreamSynchronize(s Stream) error { return failed("cuStreamSynchronize", s.cu().Synchronize()) }

// StreamQuery reports whether all work of the stream is done.
func StreamQuery(s Stream) (done bool, err error) { return pending("cuStreamQuery", s.cu().Query()) }

// StreamWaitEvent makes the stream's later work wait for the event as it was last recorded.
func StreamWaitEvent(s Stream, e Event) error {
	return failed("cuStreamWaitEvent", s.cu().Wait(e.cu(), 0))
}

// StreamWriteValue32 makes the stream write value to the word at addr after its work until now, whose
// writes are visible first.
func StreamWriteValue32(s Stream, addr uintptr, value uint32) error {
	return failed("cuStreamWriteValue32",
		s.cu().WriteValue32(cu.DevicePtr(addr), value, C.CU_STREAM_WRITE_VALUE_DEFAULT))
}

// StreamWaitValue32 makes the stream's later work wait until the word at addr has reached value. The
// comparison wraps around.
func StreamWaitValue32(s Stream, addr uintptr, value uint32) error {
	return failed("cuStreamWaitValue32",
		s.cu().WaitOnValue32(cu.DevicePtr(addr), value, C.CU_STREAM_WAIT_VALUE_GEQ))
}

// EventCreate makes an event in the current context.
func EventCreate(flags EventFlags) (Event, error) {
	e, err := cu.MakeEvent(cu.EventFlags(flags))
	return *(*Event)(unsafe.Pointer(&e)), failed("cuEventCreate", err)
}

// EventDestroy destroys an event. Streams that wait for it go on waiting for the work that it recorded.
func EventDestroy(e Event) error {
	event := e.cu()
	return failed("cuEventDestroy", cu.DestroyEvent(&event))
}

// EventRecord records an event that happens when the work that the stream was given until now is done.
func EventRecord(e Event, s Stream) error {
	return failed("cuEventRecord", e.cu().Record(s.cu()))
}

// EventQuery reports whether the event has happened, or was never recorded.
func EventQuery(e Event) (done bool, err error) { return pending("cuEventQuery", e.cu().Query()) }
