//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/internal/shm"
)

const fileID contract.SegmentID = 900 // of what is no GPU memory

// liar lends the wrong file for one segment.
type liar struct {
	*remote
	file *os.File
}

func (l liar) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	if id == fileID {
		return duplicate(l.file)
	}
	return l.remote.Descriptor(ctx, id, writable)
}

// TestHostileProgram: what a program says that is not so is an error of the right kind, and leaves
// nothing behind.
func TestHostileProgram(t *testing.T) {
	t.Parallel()
	r := start(t)
	ipc := r.alloc(contract.RouteCUDAIPC, 1<<20).(contract.CUDAIPC)        //nolint:errcheck // that is its route
	vmm := r.alloc(contract.RouteCUDAVMM, chunk, chunk).(contract.CUDAVMM) //nolint:errcheck // that is its route
	pool := r.alloc(contract.RouteCUDAPool, 1<<20).(contract.CUDAPool)     //nolint:errcheck // that is its route
	word := r.fill(ipc, 1, false).(contract.CUDAWord)                      //nolint:errcheck // that is a fence
	sealed, err := shm.Create("sealed", 4*chunk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sealed.Close() })
	fd, err := unix.MemfdCreate("unsealed", 0)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := os.NewFile(uintptr(fd), "unsealed")
	t.Cleanup(func() { unsealed.Close() })
	if err := unsealed.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close(); other.Close() })

	chunks := func(c ...contract.CUDAChunk) contract.CUDAVMM { return contract.CUDAVMM{GPU: vmm.GPU, Chunks: c} }
	ipcWith := func(change func(*contract.CUDAIPC)) contract.CUDAIPC { h := ipc; change(&h); return h }
	poolWith := func(change func(*contract.CUDAPool)) contract.CUDAPool { h := pool; change(&h); return h }
	wordWith := func(change func(*contract.CUDAWord)) contract.CUDAWord { w := word; change(&w); return w }
	var turns sync.Mutex
	for name, c := range map[string]struct {
		handle contract.Handle
		fence  contract.Fence
		file   *os.File
		want   error
	}{
		"no handle":             {nil, nil, nil, core.ErrProtocol},
		"host memory":           {contract.Segment{ID: 3, Size: 4096}, nil, nil, core.ErrProtocol},
		"another GPU":           {ipcWith(func(h *contract.CUDAIPC) { h.GPU[3]++ }), nil, nil, core.ErrDevice},
		"ipc, zeros":            {ipcWith(func(h *contract.CUDAIPC) { h.Mem = [64]byte{} }), nil, nil, core.ErrPointer},
		"ipc, noise":            {ipcWith(func(h *contract.CUDAIPC) { h.Mem = [64]byte{1, 2, 3, 63: 4} }), nil, nil, core.ErrPointer},
		"ipc, too large":        {ipcWith(func(h *contract.CUDAIPC) { h.Size = 64 << 20 }), nil, nil, core.ErrPointer},
		"ipc, huge":             {ipcWith(func(h *contract.CUDAIPC) { h.Size = 1<<63 - 1 }), nil, nil, core.ErrPointer},
		"ipc, negative":         {ipcWith(func(h *contract.CUDAIPC) { h.Size = -1 }), nil, nil, core.ErrProtocol},
		"vmm, nothing":          {chunks(), nil, nil, core.ErrProtocol},
		"vmm, a memfd":          {chunks(contract.CUDAChunk{ID: fileID, Size: chunk}), nil, sealed, core.ErrPointer},
		"vmm, a pipe":           {chunks(contract.CUDAChunk{ID: fileID, Size: chunk}), nil, pipe, core.ErrPointer},
		"vmm, no file":          {chunks(contract.CUDAChunk{ID: 77, Size: chunk}), nil, nil, core.ErrNotFound},
		"vmm, too large":        {chunks(contract.CUDAChunk{ID: vmm.Chunks[0].ID, Size: 2 * chunk}), nil, nil, core.ErrPointer},
		"vmm, too small":        {chunks(contract.CUDAChunk{ID: vmm.Chunks[0].ID, Size: 4096}), nil, nil, core.ErrPointer},
		"vmm, second is none":   {chunks(vmm.Chunks[0], contract.CUDAChunk{ID: fileID, Size: chunk}), nil, pipe, core.ErrPointer},
		"vmm, second negative":  {chunks(vmm.Chunks[0], contract.CUDAChunk{ID: vmm.Chunks[1].ID, Size: -1}), nil, nil, core.ErrProtocol},
		"pool, a memfd":         {poolWith(func(h *contract.CUDAPool) { h.Pool = fileID }), nil, sealed, core.ErrPointer},
		"pool, another's":       {poolWith(func(h *contract.CUDAPool) { h.Pool = vmm.Chunks[0].ID }), nil, nil, core.ErrPointer},
		"pool, no allocation":   {poolWith(func(h *contract.CUDAPool) { h.Pointer = [64]byte{9} }), nil, nil, core.ErrPointer},
		"pool, too large":       {poolWith(func(h *contract.CUDAPool) { h.Size = 64 << 20 }), nil, nil, core.ErrPointer},
		"word outside":          {ipc, wordWith(func(w *contract.CUDAWord) { w.Offset = pageSize }), nil, core.ErrProtocol},
		"word before":           {ipc, wordWith(func(w *contract.CUDAWord) { w.Offset = -4 }), nil, core.ErrProtocol},
		"word not aligned":      {ipc, wordWith(func(w *contract.CUDAWord) { w.Offset++ }), nil, core.ErrProtocol},
		"word, page too large":  {ipc, wordWith(func(w *contract.CUDAWord) { w.Page, w.Size = fileID, 16*chunk }), sealed, core.ErrPointer},
		"word, page can shrink": {ipc, wordWith(func(w *contract.CUDAWord) { w.Page, w.Size = fileID, 4096 }), unsealed, core.ErrProtocol},
		"word in a pipe":        {ipc, wordWith(func(w *contract.CUDAWord) { w.Page, w.Size = fileID, 4096 }), pipe, core.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch c.handle.(type) {
			case contract.CUDAPool, contract.CUDAIPC:
				// Else they open one pool, or one allocation, at the same time, as no two sessions do. The driver does not
				// count who has opened an allocation of a pool, and once did not know a pool that another had closed.
				// One allocation, opened while another closes it, was said to be mapped already.
				turns.Lock()
				defer turns.Unlock()
			}
			i := imports.New(liar{r, c.file})
			m, _, err := i.Memory(t.Context(), contract.Lease{Handle: c.handle, Fence: c.fence}, func() { t.Error("released") })
			if !errors.Is(err, c.want) || m != nil || core.Category(err) != core.Category(c.want) {
				t.Errorf("Memory = %v, %v; want %v", m, err, c.want)
			}
			if err := i.Close(); err != nil {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

// TestPoolAllocationTwice: the driver does not count who has opened an allocation of a pool, so a
// second one under another name is refused: to close it would take the memory from the first.
func TestPoolAllocationTwice(t *testing.T) {
	t.Parallel()
	r := start(t)
	pool := r.alloc(contract.RouteCUDAPool, 4096).(contract.CUDAPool) //nolint:errcheck // that is its route
	v, _ := r.view(lease(t, pool, r.fill(pool, 6, false), core.Uint8, false))
	pool.ID = 555
	if _, _, err := r.importer.Memory(t.Context(), lease(t, pool, nil, core.Uint8, false), nil); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("Memory = %v", err)
	}
	data := make([]byte, 4096)
	if _, err := core.Copy(t.Context(), data, v); err != nil {
		t.Fatal(err)
	}
	uniform(t, "the first", data, 6)
}

// TestFailedWork: the program's work that was to fill the memory has failed, and its CPU says so behind
// the word. A stream that has waited for it says so too, even if the view was closed in the meantime.
func TestFailedWork(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAIPC, 4096)
	file, err := shm.Create("words", pageSize)
	if err != nil {
		t.Fatal(err)
	}
	page, err := shm.Map(file, pageSize, true)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	r.lend(fileID, file)
	failing := lease(t, handle, contract.CUDAWord{Page: fileID, Size: pageSize, Offset: contract.CUDAWordStride, Value: 5}, core.Uint8, false)
	v, _ := r.view(failing)
	closed, released := r.view(failing)
	s, late := stream(t), stream(t)
	if err := errors.Join(s.Wait(v), late.Wait(closed), closed.Close()); err != nil {
		t.Fatal(err)
	}
	setWord(page, contract.CUDAWordStride+4, 700)
	setWord(page, contract.CUDAWordStride, 5)
	within(t, "the release", released)
	for what, s := range map[string]*cuda.Stream{"open": s, "closed": late} {
		if err := s.Synchronize(t.Context()); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("Synchronize, the view %s = %v", what, err)
		}
	}
	if err := v.Wait(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Wait = %v", err)
	}
}
