package e2e

import (
	_ "embed" // testdata/java.py
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

//go:embed testdata/java.py
var javaProgram string

// TestBesideJava: in a program that runs a JVM, which handles thousands of SIGSEGVs a second, a host sees what Java and Python write to
// arrays of the heap, of Python's and of the JVM's own, shared in place, before and after forks. The JVM was there before the plugin, or came
// after it.
func TestBesideJava(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]harness.Options{
		"started":  {Configs: promoting},
		"attached": {Configs: promoting, Attached: true},
		"copied":   {Configs: promote("never")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Python = harness.PythonJava(t)
			run := harness.Start(t, javaProgram, opts)
			besideJava(t, run, name != "copied")
			if err := run.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAttachBesideJava: the same for a program that began without the shared heap, and is asked for by its socket, or by its number.
func TestAttachBesideJava(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]string{"by its socket": "ALONE=listens", "by its number": "ALONE=works"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone := harness.RunAlone(t, javaProgram, harness.RunningOptions{
				Python: harness.PythonJava(t), Env: []string{env, "NDBRIDGE_HEAP_PROMOTE=always"}, Silent: name != "by its socket",
			})
			host := harness.NewHost(t)
			if alone.Socket != "" {
				besideJava(t, alone.Attach(t, host), true)
				return
			}
			alone.Remote.Exec(t, "assert threads[0].ident")
			s, err := host.Attach(t.Context(), hostplugin.PID(alone.PID))
			if err != nil {
				t.Fatal(err)
			}
			besideJava(t, &harness.Run{Session: s, Remote: alone.Remote, Host: host, Log: harness.NewLog()}, true)
		})
	}
}

// besideJava holds that views of all kinds of memory show what the program has written, in the order in which it has.
func besideJava(t *testing.T, run *harness.Run, shared bool) {
	t.Helper()
	newest := map[string]string{"heap": "int(heap[0])", "packed": "newest[-1]", "java": "newest[-1]"}
	sources, views, last := make(map[string]*hostplugin.Source), make(map[string]*core.View), make(map[string]int64)
	for name := range newest {
		sources[name] = source(t, run, name)
		views[name] = viewOf(t, sources[name])
		last[name] = 1
	}
	run.Remote.Exec(t, "import ndbridge; publish = ndbridge.publish; threads[0].ident or start()")
	for range 8 {
		run.Remote.Exec(t, "heap += 1; fork()")
		for name, src := range sources {
			views[name] = refreshed(t, src, views[name])
			numbers := slices.Clone(slice[int64](t, views[name])) // which Java goes on to write
			most := harness.Eval[int64](t, run.Remote, newest[name])
			if slices.Min(numbers) < last[name] || slices.Max(numbers) > most {
				t.Errorf("%s, %v, shows %d to %d; it had %d, and has %d by now",
					name, views[name].Route(), slices.Min(numbers), slices.Max(numbers), last[name], most)
			}
			last[name] = slices.Min(numbers)
		}
	}
	for name, view := range views {
		if view.Route() == contract.RouteSharedHeap != shared {
			t.Errorf("%s: %v, %v", name, view.Route(), view.Reason())
		}
	}
	state := harness.Eval[struct {
		Thrown, Expected, Newest int
		Wrong                    string
	}](t, run.Remote, "stop()")
	if state.Thrown != state.Expected || state.Thrown < 4000 || state.Newest < 4 || state.Wrong != "[]" {
		t.Errorf("%+v", state)
	}
	for _, view := range views {
		closed(t, view)
	}
	run.NoLeases(t)
}
