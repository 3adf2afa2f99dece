//go:build cuda

// Package hosttest tests what a host does with GPU memory, beside a program in another process: on the
// simulated driver, or on a real one.
package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		if err := programMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(producerVariable) != "" {
		if err := producerMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaks := coretest.Leaks()
	status := m.Run()
	for _, leak := range leaks() {
		fmt.Fprintln(os.Stderr, leak)
		status = max(status, 1)
	}
	os.Exit(status)
}

// remote is a program with arrays on a GPU, and the importer for it. It lends descriptors, as a
// contract.Producer does.
type remote struct {
	t        testing.TB
	cmd      *exec.Cmd
	conn     *fdpass.Conn
	importer *imports.Importer
	broken   string // what the test has done to the context, as errors say it; "": nothing

	mu    sync.Mutex
	files map[contract.SegmentID]*os.File
	lent  int
}

// start starts a program.
func start(tb testing.TB) *remote {
	tb.Helper()
	conn, peer, err := fdpass.Pair()
	if err != nil {
		tb.Fatal(err)
	}
	r := &remote{t: tb, conn: conn, files: make(map[contract.SegmentID]*os.File)}
	r.cmd = exec.Command(os.Args[0]) //nolint:noctx // it ends with its socket, when the importer is closed
	r.cmd.Env = append(os.Environ(), programVariable+"=1", "GORACE=atexit_sleep_ms=0")
	r.cmd.ExtraFiles = []*os.File{peer}
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	peer.Close()
	r.importer = imports.New(r)
	tb.Cleanup(func() {
		// The memory of a broken context cannot be closed any more: which of its mappings are still open is chance.
		if err := r.importer.Close(); err != nil && (r.broken == "" || !strings.Contains(err.Error(), r.broken)) {
			tb.Error(err)
		}
		conn.Close()
		if err := r.cmd.Wait(); err != nil && r.cmd.ProcessState.ExitCode() >= 0 {
			tb.Error(err)
		}
		for _, f := range r.files {
			f.Close()
		}
	})
	return r
}

// kill ends the program, whatever it does.
func (r *remote) kill() {
	r.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := r.conn.Recv(); err == nil {
		r.t.Fatal("the program lives")
	}
}

// Descriptor implements shm.Describer.
func (r *remote) Descriptor(_ context.Context, id contract.SegmentID, _ bool) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.files[id]
	if !ok {
		return nil, &core.Error{Op: "descriptor", Kind: core.ErrNotFound, Err: fmt.Errorf("segment %d", id)}
	}
	r.lent++
	return duplicate(f)
}

// duplicate makes another descriptor of a file, of whatever kind.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	if err := raw.Control(func(n uintptr) { fd, failed = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), failed
}

// lend makes the file that of a segment.
func (r *remote) lend(id contract.SegmentID, f *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.files[id]; ok {
		old.Close()
	}
	r.files[id] = f
}

func (r *remote) tell(o order) (answer, []*os.File) {
	r.t.Helper()
	msg, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.conn.Send(msg); err != nil {
		r.t.Fatal(err)
	}
	reply, files, err := r.conn.Recv()
	if err != nil {
		r.t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil {
		r.t.Fatal(err)
	}
	if a.Err != "" {
		r.t.Fatalf("%s: %s", o.Do, a.Err)
	}
	return a, files
}

// alloc lets the program make an array of bytes.
func (r *remote) alloc(route core.Route, sizes ...int64) contract.Handle {
	r.t.Helper()
	a, files := r.tell(order{Do: "alloc", Route: route, Sizes: sizes})
	switch {
	case a.IPC != nil:
		return *a.IPC
	case a.VMM != nil:
		for i, f := range files {
			r.lend(a.VMM.Chunks[i].ID, f)
		}
		return *a.VMM
	default:
		r.lend(a.Pool.Pool, files[0])
		return *a.Pool
	}
}

// free lets the program free an array that cuMemAlloc made.
func (r *remote) free(handle contract.Handle) {
	r.t.Helper()
	r.tell(order{Do: "free", Array: idOf(handle)})
}

// idOf is the name that the program gives an array.
func idOf(handle contract.Handle) contract.SegmentID {
	switch h := handle.(type) {
	case contract.CUDAIPC:
		return h.ID
	case contract.CUDAVMM:
		return h.Chunks[len(h.Chunks)-1].ID
	case contract.CUDAPool:
		return h.ID
	default:
		panic(h)
	}
}

// fill lets the program set all bytes, and gives the fence. Gated work waits for open.
func (r *remote) fill(handle contract.Handle, value byte, gated bool) contract.Fence {
	r.t.Helper()
	a, files := r.tell(order{Do: "fill", Array: idOf(handle), Value: value, Gated: gated})
	r.lend(a.Word.Page, files[0])
	return a.Word
}

// open lets the gated work go on.
func (r *remote) open() {
	r.t.Helper()
	r.tell(order{Do: "open"})
}

// check fails unless all bytes of the program's array have the value.
func (r *remote) check(handle contract.Handle, value byte) {
	r.t.Helper()
	a, _ := r.tell(order{Do: "check", Array: idOf(handle)})
	if len(a.Got) != 1 || a.Got[0] != value {
		r.t.Errorf("the program sees %v, not %d", a.Got, value)
	}
}

// lease is what the program would grant for all bytes of an array, as n elements of one type.
func lease(tb testing.TB, handle contract.Handle, fence contract.Fence, d core.DType, writable bool) contract.Lease {
	tb.Helper()
	l, err := core.NewLayout(core.LayoutSpec{
		DType: d, Device: core.Device{Kind: core.CUDA, Index: 7}, Shape: []int{int(handle.Extent()) / d.Size()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return contract.Lease{ID: 1, Layout: l, Handle: handle, Fence: fence, Writable: writable}
}

// memory opens a lease's memory.
func (r *remote) memory(l contract.Lease, release func()) (core.Memory, core.Device) {
	r.t.Helper()
	m, device, err := r.importer.Memory(r.t.Context(), l, release)
	if err != nil {
		r.t.Fatal(err)
	}
	return m, device
}

// view makes a view of a lease; what gives it back is told by closing the channel.
func (r *remote) view(l contract.Lease) (*core.View, <-chan struct{}) {
	r.t.Helper()
	released := make(chan struct{})
	m, device := r.memory(l, func() { close(released) })
	spec := l.Layout.Spec()
	spec.Device = device
	layout, err := core.NewLayout(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := core.NewView(layout, m, &core.ViewOptions{Name: "frame", Writable: l.Writable})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { v.Close() })
	return v, released
}

// stream makes a stream of device 0.
func stream(tb testing.TB) *cuda.Stream {
	tb.Helper()
	s, err := cuda.NewStream(0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// once is the config of one thread.
var once = cuda.LaunchConfig{Grid: cuda.Dim3{1}, Block: cuda.Dim3{1}}

// kernels reads the tests' kernels.
func kernels(t *testing.T) []byte {
	t.Helper()
	ptx, err := os.ReadFile("../../../test/gpu/testdata/kernels.ptx")
	if err != nil {
		t.Error(err)
	}
	return ptx
}

// loaded loads the tests' kernels.
func loaded(t *testing.T) *cuda.Module {
	t.Helper()
	m, err := cuda.LoadModule(t.Context(), 0, kernels(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// kernel finds one of the tests' kernels.
func kernel(t *testing.T, name string) *cuda.Function {
	t.Helper()
	f, err := loaded(t).Function(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// uniform fails unless all bytes have the value.
func uniform(t *testing.T, what string, data []byte, value byte) {
	t.Helper()
	for i, b := range data {
		if b != value {
			t.Fatalf("%s: byte %d of %d is %#x, expected %#x", what, i, len(data), b, value)
		}
	}
}

// float is the number whose bytes all have the value.
func float(value byte) float32 { return math.Float32frombits(uint32(value) * 0x01010101) }

// idleTime is longer than what nobody uses stays open.
const idleTime = 6 * time.Second

// within fails unless the channel is closed soon.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("not within 30 s: %s", what)
	}
}

// aloneVariable makes the test binary run a test whose process has no other tests.
const aloneVariable = "NDTEST_CUDA_ALONE"

// alone reports whether this process runs no other test. If it does, the test is run in one that does not.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), aloneVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// unavailable fails unless the error says that the program is gone, and why.
func unavailable(t *testing.T, what string, err, cause error) {
	t.Helper()
	if !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, cause) || core.Category(err) != "unavailable" {
		t.Errorf("%s: %v; expected unavailable, and why", what, err)
	}
}
