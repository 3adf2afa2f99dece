//go:build cuda

package hosttest

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// BenchmarkView is what a view costs the host whose allocation is open already: without its end, which
// waits for the GPU in the background.
func BenchmarkView(b *testing.B) {
	r := start(b)
	handle := r.alloc(contract.RouteCUDAIPC, 1<<20)
	l := lease(b, handle, r.fill(handle, 1, false), core.Float32, false)
	first, _ := r.memory(l, func() {})
	defer first.Close()
	for b.Loop() {
		m, _ := r.memory(l, func() {})
		b.StopTimer()
		m.Close()
		b.StartTimer()
	}
}

// BenchmarkClose is what the end of a view costs who closes it.
func BenchmarkClose(b *testing.B) {
	r := start(b)
	handle := r.alloc(contract.RouteCUDAIPC, 1<<20)
	l := lease(b, handle, r.fill(handle, 1, false), core.Float32, false)
	for b.Loop() {
		b.StopTimer()
		m, _ := r.memory(l, func() {})
		b.StartTimer()
		m.Close()
	}
}

// BenchmarkWait is what it costs to let a stream wait for a fence that is not reached.
func BenchmarkWait(b *testing.B) {
	r := start(b)
	handle := r.alloc(contract.RouteCUDAIPC, 1<<20)
	v, _ := r.view(lease(b, handle, r.fill(handle, 1, true), core.Float32, false))
	s := stream(b)
	n := 0
	for b.Loop() {
		if n++; n%500 == 0 { // a stream takes a thousand, and then blocks
			b.StopTimer()
			s = stream(b)
			b.StartTimer()
		}
		if err := s.Wait(v); err != nil {
			b.Fatal(err)
		}
	}
	r.open()
}

// BenchmarkCopy copies a megabyte to the host.
func BenchmarkCopy(b *testing.B) {
	r := start(b)
	handle := r.alloc(contract.RouteCUDAIPC, 1<<20)
	v, _ := r.view(lease(b, handle, r.fill(handle, 1, false), core.Uint8, false))
	data := make([]byte, v.NBytes())
	b.SetBytes(v.NBytes())
	for b.Loop() {
		if _, err := core.Copy(b.Context(), data, v); err != nil {
			b.Fatal(err)
		}
	}
}
