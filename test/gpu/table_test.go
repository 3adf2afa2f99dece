//go:build cuda

package gpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const tableTitle = "Framework, memory, route"

// TestTable hands over an array of every framework and of every kind of memory while the work that
// writes it still runs: the host must see what that work writes. Then a kernel of the host reads the
// array late, while the program has let go of it and writes to what it gets in its place: the kernel
// must have read what was there when the view was closed.
func TestTable(t *testing.T) {
	newKernels(t) // the host's context is there from now on
	for _, f := range frameworks(t) {
		t.Run(f.title(), func(t *testing.T) {
			run := start(t, f.name, f.env)
			version := harness.Eval[string](t, run.Remote, "version()")
			for _, k := range f.kinds {
				t.Run(k.name, func(t *testing.T) {
					for _, publish := range []bool{false, true} {
						row := &report.Row{Table: tableTitle}
						row.Set("framework", f.title())
						row.Set("version", version)
						row.Set("memory", k.name)
						passed := t.Run(byText(publish), func(t *testing.T) {
							handOver(t, run, f, k, publish, row)
						})
						run.NoLeases(t) // the test has closed its views
						row.Set("result", resultText(passed))
						write(t, row)
					}
				})
			}
		})
	}
}

func byText(publish bool) string {
	if publish {
		return "publish"
	}
	return "pull"
}

func resultText(passed bool) string {
	if passed {
		return "ok"
	}
	return "FAILED"
}

// handOver takes one view of an array that is being written, and gives it back while it is being read.
func handOver(t *testing.T, run *harness.Run, f framework, k kind, publish bool, row *report.Row) {
	const before, after, later = 1, 2, 3
	row.Set("by", byText(publish))
	defer func() {
		if row.Fields[len(row.Fields)-1].Name == "by" {
			row.Set("route", "none") // the view was not given
		}
	}()
	started := time.Now()
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, %d)", k.name, before))
	if err := run.View(t, "a").Close(); err != nil { // what comes first takes longer than the work below
		t.Fatal(err)
	}
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, %d)", k.name, before))
	wait := longer(time.Since(started))
	view, ran, runs := viewLate(t, run, fmt.Sprintf("('a', %q, %d)", k.name, after), publish)
	row.Set("route", view.Route())
	row.Set("copied", yes(view.Copied()))
	row.Set("reason", string(view.Reason()))
	row.Set("fence", fenceText(t, view))
	row.Set("work ran when asked", yes(ran))
	row.Set("and when given", yes(runs))
	deviceMemory := !view.Device().HostReadable()
	// To publish host memory may wait for the work, and so does the driver's copy to a pool of the host's.
	if !ran && !f.prompt && (deviceMemory || !publish && k.name != "pinned pool") {
		t.Error("the work on the array was over before the view was asked for: this proves nothing")
	}
	if !slices.Contains(k.routes, view.Route()) {
		t.Errorf("it came by route %v (%v), want one of %v", view.Route(), view.Reason(), k.routes)
	}
	if deviceMemory && !runs && !f.made {
		t.Error("the view was given when the work on the array was over")
	}
	if !deviceMemory {
		row.Set("data right", yes(all(t, "the host", contents(t, view), after)))
	} else {
		run.Remote.Exec(t, "make_result()")
		result := run.View(t, "result", writable)
		pinned(t, result)
		g := newKernels(t)
		// Whoever waits first, a stream of the host or its CPU, waits for the work.
		got := func() []float32 {
			if publish {
				return contents(t, view)
			}
			g.copyAfter(t, result, view, 0)
			g.finish(t)
			return contents(t, result)
		}()
		row.Set("data right", yes(all(t, "the host", got, after)))
		g.giveBack(t, run, k, view, result, row, after, later, wait)
	}
}

// viewLate has an array written late and takes a view of it, and says whether that work still ran when the
// view was asked for, and when it was given. On a machine that is busy with other things the work may be
// over by then, so it is tried with longer work, up to some seconds.
func viewLate(t *testing.T, run *harness.Run, array string, publish bool) (view *core.View, ran, runs bool) {
	t.Helper()
	const tries = 4
	call := "write_late"
	if publish {
		call = "publish_late"
	}
	for i := range tries {
		run.Remote.Exec(t, call+array)
		ran = harness.Eval[bool](t, run.Remote, "running('a')")
		view = run.View(t, "a")
		runs = harness.Eval[bool](t, run.Remote, "running('a')")
		if runs || i == tries-1 || ran && view.Device().HostReadable() {
			break
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
		run.Remote.Exec(t, "work.milliseconds *= 2")
	}
	run.Remote.Exec(t, "work.milliseconds = 300")
	return view, ran, runs
}

// giveBack closes a view while a kernel of the host is about to read it, and has the program use
// whatever memory it gets then.
func (k *kernels) giveBack(
	t *testing.T, run *harness.Run, memory kind, view, result *core.View, row *report.Row, value, other float32,
	wait time.Duration,
) {
	t.Helper()
	k.copyAfter(t, result, view, wait)
	closing := time.Now()
	if err := view.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(closing); took > wait/2 {
		t.Errorf("Close of a view that a kernel reads took %v", took)
	}
	reused := harness.Eval[bool](t, run.Remote, fmt.Sprintf("replace('a', %q, %v)", memory.name, other))
	if view.Copied() { // the copy's memory is what could be used again
		run.Remote.Exec(t, fmt.Sprintf("make('b', %q, %v)", memory.name, other))
		if err := run.View(t, "b").Close(); err != nil {
			t.Error(err)
		}
	}
	reads := k.busy()
	row.Set("kernel read after the program's writes", yes(reads))
	if !reads && memory.name != "managed" { // its pages may not move before the GPU has nothing else to do
		t.Error("the host's kernel was over before the program wrote: this proves nothing")
	}
	if reused && !view.Copied() {
		t.Error("the program was given the memory again that a kernel of the host was to read")
	}
	k.finish(t)
	row.Set("it read what was handed over", yes(all(t, "a kernel of the host", contents(t, result), value)))
}

// fenceText names the fence of a view.
func fenceText(t *testing.T, v *core.View) string {
	t.Helper()
	switch coretest.Fence(t, v).(type) {
	case contract.CUDAWord:
		return "word"
	default:
		return "ready"
	}
}

// all holds that values are all the same, the right one.
func all(t *testing.T, who string, values []float32, want float32) bool {
	t.Helper()
	for i, x := range values {
		if x != want {
			t.Errorf("%s: element %d of %d is %v, want %v", who, i, len(values), x, want)
			return false
		}
	}
	return true
}
