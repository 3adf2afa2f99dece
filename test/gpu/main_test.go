//go:build cuda

package gpu

import (
	"embed"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// count is that of work.py: the floats of an array.
const count = 6 << 20

//go:embed testdata/programs/program.py
var files embed.FS

// TestMain also runs the binary as a host of its own, for the tests that kill one.
func TestMain(m *testing.M) {
	if config := os.Getenv(hostConfigEnv); config != "" {
		os.Exit(runHost(config))
	}
	os.Exit(m.Run())
}

// start runs program.py with a framework until the test ends.
func start(tb testing.TB, framework string, env map[string]string, configs ...func(*hostplugin.Config)) *harness.Run {
	tb.Helper()
	script, err := files.ReadFile("testdata/programs/program.py")
	if err != nil {
		tb.Fatal(err)
	}
	opts := options(tb, env, framework)
	opts.Configs = append(opts.Configs, configs...)
	run := harness.Start(tb, string(script), opts)
	if err := run.View(tb, "ready").Close(); err != nil { // or why the program did not get there
		tb.Fatal(err)
	}
	return run
}

// startScript runs a script that may import what is in testdata/programs.
func startScript(tb testing.TB, script string, env map[string]string, args ...string) *harness.Run {
	tb.Helper()
	return harness.Start(tb, script, options(tb, env, args...))
}

func options(tb testing.TB, env map[string]string, args ...string) harness.Options {
	tb.Helper()
	programs, err := filepath.Abs("testdata/programs")
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]string{"PYTHONPATH": programs}
	if path := os.Getenv("PYTHONPATH"); path != "" {
		all["PYTHONPATH"] += string(filepath.ListSeparator) + path
	}
	maps.Copy(all, env)
	return harness.Options{Args: args, Env: all}
}

// write appends a row to the report, if one is written.
func write(tb testing.TB, row *report.Row) {
	tb.Helper()
	if file := os.Getenv("NDBRIDGE_TEST_REPORT"); file != "" {
		if err := report.Append(file, row); err != nil {
			tb.Error(err)
		}
	}
}

// yes is a cell.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
