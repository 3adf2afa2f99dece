//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// producerVariable makes the test binary a plugin that serves an array on a GPU.
const producerVariable = "NDTEST_CUDA_PRODUCER"

// elements is the length of its array, of float32.
const elements = 1 << 16

// producer serves the array "ready", whose work is done, "late", whose work never is, and "elsewhere",
// on a GPU that the host does not have.
type producer struct {
	kit.Leases
	program *program

	mu   sync.Mutex
	gpus []contract.UUID // the host's
}

func producerMain() error {
	p, err := newProgram(nil)
	if err != nil {
		return err
	}
	return kit.Serve(context.Background(), &producer{program: p}, kit.ServeOptions{Name: "gpu", Version: "1"})
}

// Configure implements contract.Configurer.
func (p *producer) Configure(s contract.Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gpus = s.GPUs
	return nil
}

// Info implements contract.Producer.
func (p *producer) Info(context.Context) (contract.Info, error) {
	return contract.Info{Plugin: "gpu 1", PID: os.Getpid(), Leases: p.Len()}, nil
}

// Arrays implements contract.Producer.
func (p *producer) Arrays(context.Context) iter.Seq2[contract.Entry, error] {
	return func(func(contract.Entry, error) bool) {}
}

// Lease implements contract.Producer.
func (p *producer) Lease(_ context.Context, name string, _ contract.Request) (contract.Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.gpus) == 0 {
		return contract.Lease{}, &core.Error{Op: "lease", Kind: core.ErrNotShared, Err: errors.New("the host has no GPU")}
	}
	var a answer
	err := p.program.do(func() error {
		_, err := p.program.alloc(order{Route: contract.RouteCUDAIPC, Sizes: []int64{4 * elements}}, &a)
		if err != nil {
			return err
		}
		return p.program.fill(order{Array: a.IPC.ID, Value: 7, Gated: name == "late"}, &a)
	})
	if err != nil {
		return contract.Lease{}, err
	}
	layout, err := core.NewLayout(core.LayoutSpec{
		DType: core.Float32, Device: core.Device{Kind: core.CUDA}, Shape: []int{elements},
	})
	if err != nil {
		return contract.Lease{}, err
	}
	handle := *a.IPC
	array := p.program.arrays[handle.ID]
	if name == "elsewhere" {
		handle.GPU[0]++
	}
	l := contract.Lease{Layout: layout, Framework: "fake", Route: contract.RouteCUDAIPC, Writable: true}
	return p.Grant(l, kit.Memory{
		Parts: []kit.Backing{part{array.addr, nil}},
		Fence: part{0, p.program.file},
		Name: func(l *contract.Lease, ids []contract.SegmentID) {
			handle.ID, a.Word.Page = ids[0], ids[1]
			l.Handle, l.Fence = handle, a.Word
		},
	}, func() {
		// The host has promised that nobody uses it any more.
		_ = p.program.do(func() error { return driver.MemFree(array.addr) }) // or the end has come
	})
}

// part is an allocation, which has no file, or the page of the words.
type part struct {
	addr uintptr
	file *os.File
}

// The methods are those of kit.Backing.

func (p part) Key() any                    { return p }
func (part) Size() int64                   { return pageSize }
func (p part) Sealed() bool                { return p.file != nil }
func (part) Close() error                  { return nil }
func (p part) Open(bool) (*os.File, error) { return shm.ReadWrite(p.file) }
