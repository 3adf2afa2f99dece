//go:build cuda

package gpu

import (
	"context"
	_ "embed" // kernels.ptx
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin"
)

//go:embed testdata/kernels.ptx
var ptx []byte

// kernelTime is how long a kernel of the host waits before it touches memory: long enough for a
// program to let go of that memory and to write to it.
const kernelTime = 600 * time.Millisecond

// longer is kernelTime, or more of it on a machine that has taken this long for steps such as those during which the kernel waits.
func longer(took time.Duration) time.Duration { return min(max(kernelTime, 4*took), bound/2) }

// bound is what nothing on a GPU here takes.
const bound = 20 * time.Second

var (
	writable = hostplugin.Writable()
	config   = cuda.LaunchConfig{Grid: cuda.Dim3{64}, Block: cuda.Dim3{256}}
)

// kernels are the host's own kernels and the stream that they run on.
type kernels struct {
	*cuda.Stream
	module    *cuda.Module
	copy, add *cuda.Function
	done      chan error
}

// newKernels loads the kernels until the test ends.
func newKernels(t *testing.T) *kernels {
	t.Helper()
	var k kernels
	var err error
	if k.Stream, err = cuda.NewStream(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	if k.module, err = cuda.LoadModule(t.Context(), 0, ptx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.module.Close() })
	for name, f := range map[string]**cuda.Function{"copy": &k.copy, "add": &k.add} {
		if *f, err = k.module.Function(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return &k
}

// pinned makes host memory known to the driver until the test ends.
func pinned(t *testing.T, v *core.View) {
	t.Helper()
	unpin, err := cuda.Pin(0, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unpin(); err != nil {
			t.Error(err)
		}
	})
}

// copyAfter has a kernel copy one view to another in pinned memory, after a while.
func (k *kernels) copyAfter(t *testing.T, to, from *core.View, wait time.Duration) {
	t.Helper()
	if err := k.copy.Launch(k.Stream, config, to, cuda.In(from), uint64(count), uint64(wait)); err != nil {
		t.Fatal(err)
	}
	k.done = make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(contextOfProcess(), bound)
		defer cancel()
		k.done <- k.Synchronize(ctx)
	}()
}

// busy says whether the kernels still run.
func (k *kernels) busy() bool { return len(k.done) == 0 }

// finish waits for the kernels.
func (k *kernels) finish(t *testing.T) {
	t.Helper()
	if err := <-k.done; err != nil {
		t.Fatal(err)
	}
}

// contents copies a view's floats, wherever they are, after what must come before.
func contents(t *testing.T, v *core.View) []float32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	data := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(ctx, data, v); err != nil {
		t.Fatal(err)
	}
	return floats(data)
}

// contextOfProcess is the context of a host that lives until it is killed.
func contextOfProcess() context.Context { return context.Background() }
