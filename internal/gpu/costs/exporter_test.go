//go:build cuda

package costs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

const (
	exporterEnv = "COSTS_EXPORTER" // makes the test binary a process that exports memory by this route
	allocations = 100
)

// offer is one allocation of the other process. A descriptor may come with it.
type offer struct {
	GPU contract.UUID
	Mem [64]byte
}

// exporter is the other process. It implements shm.Describer.
type exporter struct {
	leases []contract.Lease
	files  map[contract.SegmentID]*os.File
}

func runExporter() int {
	if err := export(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func export() error {
	conn, err := fdpass.FromFile(os.NewFile(3, "side"))
	if err != nil {
		return err
	}
	devices, err := cuda.Devices()
	if err != nil {
		return err
	}
	g, err := gpu.Open(0)
	if err != nil {
		return err
	}
	for range allocations {
		o := offer{GPU: devices[0].UUID}
		var files []*os.File
		if os.Getenv(exporterEnv) == string(contract.RouteCUDAVMM) {
			f, err := exportChunk(g)
			if err != nil {
				return err
			}
			files = append(files, f)
		} else if err := g.Do(func() error { return exportIPC(&o) }); err != nil {
			return err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if err := conn.Send(text, files...); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func exportIPC(o *offer) error {
	p, err := driver.MemAlloc(size)
	if err != nil {
		return err
	}
	mem, err := driver.IPCGetMemHandle(p)
	o.Mem = mem
	return err
}

func exportChunk(g *gpu.Primary) (*os.File, error) {
	fd := -1
	err := g.Do(func() error {
		h, err := driver.MemCreate(g.Device, size)
		if err != nil {
			return err
		}
		fd, err = driver.MemExport(h)
		return err
	})
	return os.NewFile(uintptr(fd), "chunk"), err //nolint:gosec // a descriptor
}

// startExporter runs the other process until the test ends.
func startExporter(t *testing.T, route core.Route) *exporter {
	t.Helper()
	conn, theirs, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // ends with its input
	command.Env = append(os.Environ(), exporterEnv+"="+string(route))
	command.ExtraFiles = []*os.File{theirs}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the other process: %v: %s", err, &stderr)
		}
	})
	e := &exporter{files: map[contract.SegmentID]*os.File{}}
	for i := range allocations {
		text, files, err := conn.Recv()
		if err != nil {
			in.Close()
			t.Fatalf("the other process: %v: %v, %s", err, command.Wait(), &stderr)
		}
		var o offer
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		e.add(t, contract.SegmentID(i+1), o, files)
	}
	return e
}

func (e *exporter) add(t *testing.T, id contract.SegmentID, o offer, files []*os.File) {
	t.Helper()
	layout, err := core.NewLayout(core.LayoutSpec{
		DType: core.Uint8, Device: core.Device{Kind: core.CUDA}, Shape: []int{size},
	})
	if err != nil {
		t.Fatal(err)
	}
	lease := contract.Lease{ID: contract.LeaseID(id), Layout: layout, Fence: contract.Ready{}, Writable: true}
	if len(files) > 0 {
		t.Cleanup(func() { files[0].Close() })
		e.files[id] = files[0]
		lease.Route = contract.RouteCUDAVMM
		lease.Handle = contract.CUDAVMM{GPU: o.GPU, Chunks: []contract.CUDAChunk{{ID: id, Size: size}}}
	} else {
		lease.Route = contract.RouteCUDAIPC
		lease.Handle = contract.CUDAIPC{ID: id, Size: size, GPU: o.GPU, Mem: o.Mem}
	}
	e.leases = append(e.leases, lease)
}

// Descriptor implements shm.Describer.
func (e *exporter) Descriptor(_ context.Context, id contract.SegmentID, _ bool) (*os.File, error) {
	fd, err := unix.FcntlInt(e.files[id].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "chunk"), nil //nolint:gosec // a descriptor
}

// open opens a lease's memory with the driver's own calls, and says how long that took.
func (e *exporter) open(t *testing.T, g *gpu.Primary, lease contract.Lease) time.Duration {
	t.Helper()
	var took time.Duration
	err := g.Do(func() error {
		start := time.Now()
		if h, ok := lease.Handle.(contract.CUDAIPC); ok {
			p, err := driver.IPCOpenMemHandle(h.Mem)
			took = time.Since(start)
			if err != nil {
				return err
			}
			return driver.IPCCloseMemHandle(p)
		}
		p, handle, err := mapChunk(g, e.files[contract.SegmentID(lease.ID)])
		took = time.Since(start)
		if err != nil {
			return err
		}
		return firstOf(driver.MemUnmap(p, size), driver.MemRelease(handle), driver.MemAddressFree(p, size))
	})
	if err != nil {
		t.Fatal(err)
	}
	return took
}

func mapChunk(g *gpu.Primary, f *os.File) (uintptr, driver.MemHandle, error) {
	handle, err := driver.MemImport(int(f.Fd())) //nolint:gosec // a descriptor
	if err != nil {
		return 0, 0, err
	}
	p, err := driver.MemAddressReserve(size)
	if err != nil {
		return 0, 0, err
	}
	if err := driver.MemMap(p, size, handle); err != nil {
		return 0, 0, err
	}
	return p, handle, driver.MemSetAccess(p, size, g.Device, true)
}
