//go:build cuda

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const faultsTitle = "What is wrong, and what is said"

// said writes a row of what a wrong thing led to.
func said(t *testing.T, what string, answer any) {
	t.Helper()
	row := &report.Row{Table: faultsTitle}
	row.Set("what", what)
	row.Set("answer", answer)
	write(t, row)
}

// TestFaultPointer asks for arrays that say they are where they are not.
func TestFaultPointer(t *testing.T) {
	run := start(t, "driver", nil)
	run.Remote.Exec(t, `
class Liar:
    def __init__(self, address, shape):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<f4", "data": (address, False), "strides": None, "version": 3, "stream": 1,
        }

make("good", "cuMemAlloc", 1)
make("gone", "cuMemAlloc", 1)
address = framework.address(arrays["gone"])
del arrays["gone"]
freed = Liar(address, (COUNT,))
nowhere = Liar(8, (4,))
host = Liar(id(freed), (4,))
past = Liar(framework.address(arrays["good"]), (COUNT + (1 << 24),))
before = Liar(framework.address(arrays["good"]) - 4096, (COUNT,))
inside = Liar(framework.address(arrays["good"]) + 4, (COUNT - 1,))
`)
	for name, what := range map[string]string{
		"freed": "an array in memory that was freed", "nowhere": "an address that is none",
		"host": "host memory that is said to be a GPU's", "past": "an array that reaches over the end of its allocation",
		"before": "an array that begins before its allocation",
	} {
		view, err := run.Session.View(t.Context(), name)
		if !errors.Is(err, core.ErrPointer) {
			t.Errorf("%s: %v, want ErrPointer", what, err)
		}
		if err == nil {
			view.Close()
		}
		said(t, what, err)
	}
	inside := run.View(t, "inside")
	data := contents(t, inside)
	if all(t, "what is inside", data, 1); len(data) != count-1 {
		t.Errorf("%d elements", len(data))
	}
}

// TestFaultReusedAddress frees an array whose allocation the host has imported, and has the next one lie
// where it lay: views of that show its contents.
func TestFaultReusedAddress(t *testing.T) {
	run := start(t, "driver", nil)
	reused := 0
	const tries = 8
	var last uintptr
	for i := range tries {
		run.Remote.Exec(t, fmt.Sprintf("make('a', 'cuMemAlloc', %d)", i))
		address := harness.Eval[uintptr](t, run.Remote, "framework.address(arrays['a'])")
		if address == last {
			reused++
		}
		last = address
		view := run.View(t, `arrays["a"]`)
		all(t, fmt.Sprintf("array %d", i), contents(t, view), float32(i))
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
		run.NoLeases(t)
		run.Remote.Exec(t, "del arrays['a']")
	}
	said(t, "an allocation is freed while the host has it open, and another one takes its address",
		fmt.Sprintf("new contents every time; %d of %d had the address of the one before", reused, tries))
	if reused == 0 {
		t.Error("no allocation took the address of another one: this proves nothing")
	}
}

// TestFaultProgramKilled kills a program while a kernel of the host waits for its work: the host's
// stream comes free, and says so.
func TestFaultProgramKilled(t *testing.T) {
	run := start(t, "driver", map[string]string{"WORK_MS": "8000"})
	pid := run.PID(t)
	run.Remote.Exec(t, "make('a', 'cuMemAlloc', 1); make('b', 'cuMemAlloc', 1); make_result(); write_late('a', 'cuMemAlloc', 2)")
	view := run.View(t, `arrays["a"]`)
	if _, waits := coretest.Fence(t, view).(contract.CUDAWord); !waits {
		t.Fatalf("the view's fence is %#v", coretest.Fence(t, view))
	}
	result := run.View(t, "result", writable)
	pinned(t, result)
	g := newKernels(t)
	g.copyAfter(t, result, view, 0)
	if !g.busy() {
		t.Fatal("the kernel does not wait")
	}
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-g.done
	free := time.Since(killed)
	said(t, "the program is killed while a kernel of the host waits for it: Stream.Synchronize, after "+
		free.Round(time.Millisecond).String(), err)
	if !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Synchronize: %v, want ErrUnavailable", err)
	}
	if free > 6*time.Second {
		t.Errorf("the stream came free after %v: by the program's own work, or not at all", free)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	err = view.Wait(ctx)
	said(t, "then View.Wait", err)
	if !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("View.Wait: %v, want ErrUnavailable", err)
	}
	_, err = core.CopyBytes(ctx, make([]byte, view.NBytes()), view)
	said(t, "then core.CopyBytes", err)
	if !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("CopyBytes: %v, want ErrUnavailable", err)
	}
	if err := view.Close(); err != nil {
		t.Errorf("closing it: %v", err)
	}

	// The host itself is as good as before.
	next := start(t, "driver", nil)
	next.Remote.Exec(t, "make('a', 'cuMemAlloc', 3)")
	all(t, "the next program's array", contents(t, next.View(t, `arrays["a"]`)), 3)
}

// TestFaultFork has a program fork after it has used its GPU, and then hand over an array.
func TestFaultFork(t *testing.T) {
	run := start(t, "driver", nil)
	run.Remote.Exec(t, "make('a', 'cuMemAlloc', 1)")
	view := run.View(t, `arrays["a"]`)
	status := harness.Eval[int](t, run.Remote, `(lambda child: os.waitpid(child, 0)[1] if child else child_publishes())(os.fork())`)
	said(t, "ndbridge.publish in a forked child", "RuntimeError, and the child ends as it wants")
	if status != 0 {
		t.Errorf("the child ended with status %d", status)
	}
	all(t, "the view that was open", contents(t, view), 1)
	run.Remote.Exec(t, "make('b', 'cuMemAlloc', 2)")
	all(t, "a view after the fork", contents(t, run.View(t, `arrays["b"]`)), 2)
}

// TestFaultCapture asks for an array while the program captures work into a graph.
func TestFaultCapture(t *testing.T) {
	run := start(t, "driver", nil)
	run.Remote.Exec(t, "make('a', 'cuMemAlloc', 1); ndbridge.publish('published', a); capture = begin_capture(0)")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	view, err := run.Session.View(ctx, `arrays["a"]`)
	said(t, "a view while a stream is captured into a graph", err)
	if err == nil {
		view.Close()
	}
	if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, context.DeadlineExceeded) || !ok || e.Remedy == "" {
		t.Errorf("while a stream is captured: %v, want one that the deadline ended, and a remedy", err)
	}
	all(t, "what was published, while a stream is captured", contents(t, run.View(t, "published")), 1)
	run.Remote.Exec(t, "end_capture(capture)")
	all(t, "a view after the capture", contents(t, run.View(t, `arrays["a"]`)), 1)
}

// TestFaultPoolOfOwnContext asks for memory of a pool that is used in a context of the program's own.
func TestFaultPoolOfOwnContext(t *testing.T) {
	if !has(t, "pycuda") {
		t.Fatal("PyCUDA, which works in a context of its own, is in the bundle")
	}
	run := start(t, "pycuda", nil)
	run.Remote.Exec(t, "pooled = framework.pooled()")
	view, err := run.Session.View(t.Context(), "pooled")
	said(t, "memory of a pool, in a context that is not the primary one", err)
	if err == nil {
		view.Close()
	}
	if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrDevice) || !ok || e.Remedy == "" {
		t.Errorf("memory of a pool, in a context of the program's own: %v, want ErrDevice and a remedy", err)
	}
}

// TestFaultOtherDevice hands over an array on the second device, where there is one, which is the host's
// by its UUID, whatever number each side gives it.
func TestFaultOtherDevice(t *testing.T) {
	devices, err := cuda.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) < 2 {
		if os.Getenv("CUDASIM_DEVICES") != "" {
			t.Fatalf("%d simulated devices", len(devices))
		}
		t.Skip("needs two GPUs")
	}
	for numbers, index := range map[string]int{"0,1": 0, "1,0": 1, "1": 1} {
		run := start(t, "driver", map[string]string{"CUDA_VISIBLE_DEVICES": numbers})
		run.Remote.Exec(t, "make('a', 'cuMemAlloc', 5)")
		view := run.View(t, `arrays["a"]`)
		said(t, "device 0 of a program with CUDA_VISIBLE_DEVICES="+numbers, fmt.Sprintf("%v of the host", view.Device()))
		if view.Device().Index != index {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: the array is on %v, want device %d", numbers, view.Device(), index)
		}
		all(t, numbers, contents(t, view), 5)
		if index != 0 {
			refuseOtherDevice(t, view)
		}
	}
}

// refuseOtherDevice passes a view to a kernel that runs on another device.
func refuseOtherDevice(t *testing.T, view *core.View) {
	t.Helper()
	g := newKernels(t)
	err := g.add.Launch(g.Stream, config, cuda.In(view), uint64(count), float32(1), uint64(0))
	said(t, "a kernel on another device than its argument", err)
	if !errors.Is(err, core.ErrDevice) {
		t.Errorf("a kernel on another device: %v, want ErrDevice", err)
	}
}

// TestFaultNoDevice looks at arrays of a program with a GPU from a host that sees none, and at those of
// a program without one.
func TestFaultNoDevice(t *testing.T) {
	seen := hostOf(t, map[string]string{"CUDA_VISIBLE_DEVICES": "0"}, "CUDA_VISIBLE_DEVICES=")
	said(t, "a host that sees no GPU", fmt.Sprintf("route %s, reason %s", seen.Route, seen.Reason))
	if seen.Route != contract.RouteStaged || seen.Reason != contract.ReasonHostWithoutGPU || seen.First != 7 {
		t.Errorf("a host without a GPU was given %+v", seen)
	}
	run := startScript(t, "import numpy\nimport remote\nx = numpy.ones(1 << 20)\nremote.serve()\n",
		map[string]string{"CUDA_VISIBLE_DEVICES": ""})
	if x, err := core.At[float64](run.View(t, "x"), 5); x != 1 || err != nil {
		t.Errorf("a program without a GPU: %v (%v)", x, err)
	}
}

// TestFaultHostKilled kills a host that holds a view of an array on a GPU: nothing is left of either.
func TestFaultHostKilled(t *testing.T) {
	h := startHost(t, nil, "")
	defer h.end()
	if err := h.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	after := harness.Eventually(t, 10*time.Second, "the program has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", h.seen.PID))
		return errors.Is(err, os.ErrNotExist)
	})
	said(t, "the host is killed while it holds a view", "the program is gone after "+after.Round(time.Millisecond).String())
}
