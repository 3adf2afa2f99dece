package wire_test

import (
	"os"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// TestSegmentsOverTheWire: a program gets the host's memory, and its words count who uses it.
func TestSegmentsOverTheWire(t *testing.T) {
	t.Parallel()
	c := newCallee(t)
	link := dialCalls(t, c.program())
	openCalls(t, link, c)
	f, err := shm.Create("segment", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	var giving sync.WaitGroup
	for n := range uint32(32) { // descriptors find the request that they belong to
		giving.Go(func() {
			if err := link.Client.Adopt(t.Context(), n, []*os.File{f}, calls.Adoption{Size: 4, Writable: n%2 == 1}); err != nil {
				t.Error(err)
			}
		})
	}
	giving.Wait()
	vmm := contract.CUDAVMM{GPU: contract.UUID{15: 1}}
	var chunks []*os.File
	for range calls.MaxChunks + 1 {
		vmm.Chunks = append(vmm.Chunks, contract.CUDAChunk{Size: 4})
		chunks = append(chunks, f)
	}
	wantRemote(t, "too many chunks", link.Client.Adopt(t.Context(), 34, chunks, calls.Adoption{Handle: vmm}), core.ErrProtocol, "65 allocations")
	vmm.Chunks = vmm.Chunks[:2]
	for n, h := range map[uint32]contract.Handle{33: vmm, 35: contract.CUDAIPC{Size: 5}} {
		if _, ok := h.(contract.CUDAIPC); ok {
			chunks = nil
		} else {
			chunks = []*os.File{f, f}
		}
		if err := link.Client.Adopt(t.Context(), n, chunks, calls.Adoption{Handle: h}); err != nil {
			t.Error(err)
		}
	}
	err = link.Client.Adopt(t.Context(), 36, nil, calls.Adoption{Handle: contract.CUDAPool{Size: 5}})
	wantRemote(t, "a pool", err, core.ErrProtocol, "CUDAPool")
	for n, want := range map[uint32]string{
		0: "text", 1: "textw", 31: "textw", 32: "", 33: "texttext on a GPU: contract.CUDAVMM of 8", 35: " on a GPU: contract.CUDAIPC of 5",
	} {
		if got := c.segment(n); got != want {
			t.Errorf("segment %d is %q, want %q", n, got, want)
		}
	}
	if err := link.Client.Forget(t.Context(), 1); err != nil || c.segment(1) != "" {
		t.Errorf("Forget = %v, and the program has %q", err, c.segment(1))
	}
	wantRemote(t, "too many segments", link.Client.Adopt(t.Context(), calls.MaxSegments, []*os.File{f}, calls.Adoption{Size: 4}), core.ErrProtocol, "segment 4096")
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer other.Close()
	wantRemote(t, "a pipe", link.Client.Adopt(t.Context(), 2, []*os.File{pipe}, calls.Adoption{Size: 4}), core.ErrUnavailable, "adopt")
}
