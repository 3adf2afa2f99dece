//go:build cuda

package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestKernelReadIsWaitedFor has a program write to an array in place while a kernel of the host is about to read it: the
// kernel reads what was written, unless the program's stream has waited for it.
func TestKernelReadIsWaitedFor(t *testing.T) {
	for name, stream := range map[string]string{
		"driver": ", stream=framework.stream()", "pycuda": ", stream=framework.stream()", "torch": "", "cupy": "",
	} {
		if has(t, name) {
			t.Run(name, func(t *testing.T) { readIsWaitedFor(t, name, stream) })
		}
	}
}

func readIsWaitedFor(t *testing.T, name, stream string) {
	kind := firstKinds[name]
	run := start(t, name, nil)
	started := time.Now()
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); make_result(); framework.write(%[1]q, arrays['a'], 2); synchronize()", kind))
	wait := longer(time.Since(started))
	result := run.View(t, "result", writable)
	pinned(t, result)
	g := newKernels(t)
	row := &report.Row{Table: "A program writes 2 to an array of ones in place, before a kernel of the host reads it"}
	row.Set("framework", name)
	for _, waits := range []bool{false, true} {
		run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1)", kind))
		view := run.View(t, `arrays["a"]`)
		g.copyAfter(t, result, view, wait)
		if waits {
			run.Remote.Exec(t, fmt.Sprintf("ndbridge.wait(arrays['a']%s)", stream))
		}
		run.Remote.Exec(t, fmt.Sprintf("framework.write(%q, arrays['a'], 2)", kind))
		if !waits && !g.busy() { // behind a wait, the driver may keep the program's CPU from going on
			t.Error("the kernel had read before the program wrote: this proves nothing")
		}
		g.finish(t)
		read := harness.Eval[[]float32](t, run.Remote, "[float(result.min()), float(result.max())]")
		row.Set(map[bool]string{false: "read without ndbridge.wait", true: "read with it"}[waits], read)
		if waits && (read[0] != 1 || read[1] != 1) {
			t.Errorf("the kernel read elements from %v to %v, though the program has waited for it", read[0], read[1])
		}
		if wrote := harness.Eval[[]float32](t, run.Remote, "contents('a')"); wrote[0] != 2 || wrote[1] != 2 {
			t.Errorf("afterwards the array has elements from %v to %v, where 2 was written", wrote[0], wrote[1])
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, row)
	// Nothing is read any more, so nothing is waited for.
	run.Remote.Exec(t, fmt.Sprintf("ndbridge.wait(arrays['a']%s); synchronize()", stream))
}
