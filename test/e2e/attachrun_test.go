package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// wheel makes a folder with the package ndbridge as the wheel has it.
func wheel(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if err := os.MkdirAll(filepath.Join(dir, "ndbridge", "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"hostplugin/bootstrap/python/ndbridge.py": "__init__.py", "native/wheel/__main__.py": "__main__.py",
	} {
		text, err := os.ReadFile(filepath.Join("../..", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "ndbridge", to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bridge(t), filepath.Join(dir, "ndbridge", "bin", "ndbridge")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRunNeedsTheWheel: the module alone has no command line, and says so.
func TestRunNeedsTheWheel(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), harness.Python(t), "-m", "ndbridge", "run", "train.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("../..", "hostplugin/bootstrap/python"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "needs the wheel") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRunListens: python -m ndbridge run does what python does with a script or a module, in a program that listens and has the shared heap.
func TestRunListens(t *testing.T) {
	site := wheel(t)
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	const body = `
import multiprocessing, sys, os
import numpy as np
import helper
x = np.full(1 << 17, 2.0)
def main():
    print(os.path.basename(sys.argv[0]), sys.argv[1:], __name__, sys.flags.dont_write_bytecode, helper.here, sorted(k for k in globals() if k.startswith("_") and not k.startswith("__")), flush=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(helper.double, (21,)), flush=True)
    sys.stdin.read()
    sys.exit(7)
if __name__ == "__main__":
    main()
`
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pkg"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"listener.py": body, "helper.py": "here = True\ndef double(x): return x * 2\n", "pkg/__init__.py": "", "pkg/__main__.py": body, "__main__.py": body,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := harness.NewHost(t)
	for _, python := range append(harness.Pythons(t), harness.Python(t)) {
		for name, args := range map[string][]string{
			"listener": {"listener.py", "--epochs", "3"},
			"pkg":      {"-m", "pkg", "--epochs", "3"},
			"called":   {"--name", "called", ".", "--epochs", "3"},
		} {
			if name != "listener" && python != harness.Python(t) {
				continue
			}
			cmd := exec.Command(python, append([]string{"-B", "-m", "ndbridge", "run"}, args...)...) //nolint:noctx // it ends by its input
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONPATH="+site, "PYTHONWARNINGS=ignore")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stdout)
			first, _ := lines.ReadString('\n')
			second, _ := lines.ReadString('\n')
			if !strings.Contains(first, "['--epochs', '3'] __main__ 1 True []") || second != "42\n" {
				t.Errorf("%s %v printed %q, %q\n%s", python, args, first, second, stderr.String())
			}
			s, err := host.Attach(t.Context(), hostplugin.Name(name))
			if err != nil {
				t.Errorf("%s %v: %v", python, args, err)
			} else {
				v, err := s.View(t.Context(), "x")
				if err != nil {
					t.Errorf("%s %v: %v", python, args, err)
				} else if data, err := core.Slice[float64](v); err != nil || data[9] != 2 || v.Route() != contract.RouteSharedHeap {
					t.Errorf("%s %v: %v, %v, route %v (%v)", python, args, data[9], err, v.Route(), v.Reason())
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := stdin.Close(); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
				t.Errorf("%s %v: %v\n%s", python, args, err, stderr.String())
			}
		}
	}
	if left, err := filepath.Glob(run + "/ndbridge/*.*"); err != nil || len(left) != 0 {
		t.Errorf("sockets are left: %v, %v", left, err)
	}
}
