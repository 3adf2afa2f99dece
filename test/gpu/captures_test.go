//go:build cuda

package gpu

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// capturing is a way in which a framework captures graphs, beside a host that looks at an array of some kind.
type capturing struct {
	framework, how string // a function of testdata/programs/with_NAME.py
	kind           string // of the array; "": the framework's first
	sync           contract.SyncPolicy
	env            map[string]string
	says           string // in what it prints, if it captures
}

// TestUndisturbedCaptures captures graphs beside a host that looks all the time, in every mode, by hand and by what compilers do: none
// breaks.
func TestUndisturbedCaptures(t *testing.T) {
	ways := []capturing{
		{framework: "driver", how: "capture"},
		{framework: "torch", how: "capture"},
		{framework: "torch", how: "capture_pinned", kind: "pinned", sync: contract.SyncStream},
		{framework: "torch", how: "capture_compiled"},
		{framework: "cupy", how: "capture"},
		{framework: "jax", how: "capture", env: map[string]string{
			"XLA_FLAGS":            "--xla_gpu_graph_min_graph_size=1 --xla_gpu_enable_triton_gemm=false",
			"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "command_buffer_cmd=5,traced_command=5,traced_command_buffer=5",
		}, says: "traced command"},
	}
	for _, way := range ways {
		if has(t, way.framework) {
			t.Run(way.framework+"/"+way.how, func(t *testing.T) { undisturbedCaptures(t, way) })
		}
	}
}

func undisturbedCaptures(t *testing.T, way capturing) {
	const captures, parts = 1000, 10
	run := start(t, way.framework, way.env, func(c *hostplugin.Config) {
		if way.sync != "" {
			c.Adapters = append(c.Adapters, hostplugin.Adapter{Name: way.framework, Sync: way.sync})
		}
	})
	kind := way.kind
	if kind == "" {
		kind = firstKinds[way.framework]
	}
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); framework.%s(0); synchronize()", kind, way.how))
	if err := run.View(t, "a").Close(); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		broken float64
		why    any
	}
	done := make(chan outcome, 1)
	capture := func() {
		var all outcome
		for range parts {
			part := harness.Eval[[]any](t, run.Remote, fmt.Sprintf("captures(%d, %q)", captures/parts, way.how))
			if n, ok := part[0].(float64); !ok || n > 0 {
				all = outcome{all.broken + n, part[1]}
			}
		}
		done <- all
	}
	go capture()
	for looks, rounds := 1, 1; ; looks++ {
		if err := run.View(t, "a").Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case is := <-done:
			if is.broken == 0 && looks < 10 && rounds < 10 { // on a machine that is busy with other things
				rounds++
				go capture()
				continue
			}
			row := &report.Row{Table: "Captures of graphs beside a host that looks all the time"}
			row.Set("framework", way.framework)
			row.Set("how", way.how)
			row.Set("array", kind)
			row.Set("captures", rounds*captures)
			row.Set("looks", looks)
			row.Set("broken", is.broken)
			write(t, row)
			if is.broken > 0 {
				t.Errorf("%v of %d captures were broken, beside %d looks: %v", is.broken, captures, looks, is.why)
			}
			if looks < 10 {
				t.Errorf("only %d looks: this proves nothing", looks)
			}
			if way.says != "" && !run.Log.Contains(way.says) {
				t.Errorf("the program does not say %q: this proves nothing", way.says)
			}
			return
		default:
		}
	}
}
