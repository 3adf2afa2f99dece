package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// inNamespaces gives an interpreter that runs in namespaces of its own, as options of unshare(1) say, after a command of the shell. The test is skipped
// where nobody may make such namespaces.
func inNamespaces(t *testing.T, python, first string, options ...string) string {
	t.Helper()
	options = append(options, "sh", "-c")
	if out, err := exec.CommandContext(t.Context(), "unshare", append(options, "true")...).CombinedOutput(); err != nil {
		t.Skipf("namespaces are refused here: %v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "python")
	text := fmt.Sprintf("#!/bin/sh\nexec unshare %s '%s && exec \"$0\" \"$@\"' '%s' \"$@\"\n", strings.Join(options, " "), first, python)
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return file
}

// TestAttachByPIDInAContainer: a process in another mount or PID namespace is refused, with what its user can do, and goes on.
func TestAttachByPIDInAContainer(t *testing.T) {
	t.Parallel()
	host := harness.NewHost(t)
	for options, want := range map[string]string{
		"-Urm": "namespace of file systems", "-Urpf": "namespace of processes", "-Urmpf": "the process is in another namespace of ",
	} {
		run := harness.RunAlone(t, unprepared, harness.RunningOptions{Python: inNamespaces(t, pythonOf(t, "3.14"), "true", options)})
		pid := run.PID
		if strings.Contains(options, "f") { // unshare waits for it
			children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(children)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := host.Attach(t.Context(), hostplugin.PID(pid))
		if s != nil {
			_ = s.Close()
		}
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "with a socket in a volume that both have") {
			t.Errorf("%s: %v", options, err)
		}
		if !run.Alive() || run.Stderr() != "" {
			t.Errorf("%s: the program: %s", options, run.Stderr())
		}
	}
}

// TestAttachIntoAContainer: a host attaches by a socket in a folder that both have to a program in other namespaces, which sees neither the
// host's processes nor its plugin's file. The host's view is live, and so is the program's of the host's array.
func TestAttachIntoAContainer(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	for _, file := range []string{"python/ndbridge.py", "libndbridge-heap.so"} {
		data, err := os.ReadFile(harness.Library(t, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(shared, filepath.Base(file)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hides := `mount -t tmpfs none "` + harness.Library(t, "") + `"`
	for _, options := range [][]string{{"-Urmpf"}, {"-Urmpf", "--mount-proc"}} {
		run := harness.RunAlone(t, `
import ndbridge, numpy as np, os, remote
print(ndbridge.listen(path=os.environ["XDG_RUNTIME_DIR"] + "/socket"), flush=True)
x = np.full(1 << 17, 1.0)
def double(a): a *= 2
remote.serve()
`, harness.RunningOptions{Python: inNamespaces(t, harness.Python(t), hides, options...), Env: []string{
			"PYTHONPATH=" + shared, "LD_PRELOAD=" + shared + "/libndbridge-heap.so",
		}})
		host := harness.NewHost(t)
		s := run.Attach(t, host)
		view := s.View(t, "x", hostplugin.NoCopy())
		run.Remote.Exec(t, "x[7] = 5")
		if data := slice[float64](t, view); data[6] != 1 || data[7] != 5 {
			t.Errorf("%v: the host sees %v", options, data[6:8])
		}
		a, err := s.New(core.Float64, 1<<17)
		if err != nil {
			t.Fatal(err)
		}
		data := slice[float64](t, a)
		data[3] = 4
		double, err := s.Func(t.Context(), "double")
		if err != nil {
			t.Fatal(err)
		}
		r, err := double.Call(t.Context(), a)
		if err == nil {
			err = r.Close()
		}
		if err != nil || data[3] != 8 {
			t.Errorf("%v: the program has made %v of 4: %v", options, data[3], err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !run.Alive() || run.Stderr() != "" {
			t.Errorf("%v: the program: %s", options, run.Stderr())
		}
	}
}
