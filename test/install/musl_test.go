package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// muslRefused checks the words in which a Python that is linked with musl, as that of Alpine is, is refused.
func muslRefused(t *testing.T, said string) {
	t.Helper()
	for _, want := range []string{"unavailable: ", "linked with musl", "needs glibc", "python:3-slim instead of python:3-alpine"} {
		if !strings.Contains(said, want) {
			t.Errorf("it lacks %q: %s", want, said)
		}
	}
	if strings.Contains(said, "will be copied") {
		t.Errorf("it speaks of a program that runs: %s", said)
	}
}

// TestMusl: each way to a Python that is linked with musl ends in an error that says so, and leaves nothing behind.
func TestMusl(t *testing.T) {
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_MUSL")
	if python == "" {
		t.Skip("make test-systems builds a Python with musl, which takes minutes")
	}
	dir, command := t.TempDir(), this(t).command
	script, wrapper := filepath.Join(dir, "frame.py"), filepath.Join(dir, "python3")
	for file, text := range map[string]string{
		script:  "import array\nframe = array.array('d', range(100))\nprint('it ran')\n",
		wrapper: fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", python),
	} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // one is to be run
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"doctor":                           {"doctor", "--python", python},
		"ls":                               {"ls", "--python", python, "--script", script},
		"view":                             {"view", "--python", python, "--script", script, "frame"},
		"run":                              {"run", "--python", python, "--script", script},
		"by a script":                      {"run", "--python", wrapper, "--script", script},
		"by a script, with no shared heap": {"view", "--no-shared-heap", "--python", wrapper, "--script", script, "frame"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), command, args...)
			tmp := t.TempDir()
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			out, err := cmd.CombinedOutput()
			if _, exited := errors.AsType[*exec.ExitError](err); !exited || strings.Contains(string(out), "it ran") {
				t.Errorf("%v: %s", err, out)
			}
			muslRefused(t, strings.Join(strings.Fields(string(out)), " ")) // doctor breaks lines
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}

	t.Run("Start", func(t *testing.T) {
		for _, python := range []string{python, wrapper} {
			s, err := hostplugin.Run(t.Context(), hostplugin.Program{Python: python, Script: script, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil {
				t.Fatal("it runs", s.Close())
			}
			if !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("with %s: %v", python, err)
			}
			muslRefused(t, fmt.Sprintf("%+v", err))
		}
	})
	t.Run("the wheel's run", func(t *testing.T) {
		site := t.TempDir()
		s := sandbox{t: t, dir: root, env: append(os.Environ(), "PYTHONPATH="+site)}
		s.run("install", "-D", "hostplugin/bootstrap/python/ndbridge.py", site+"/ndbridge/__init__.py")
		s.run("install", "native/wheel/__main__.py", site+"/ndbridge/__main__.py")
		if got := s.run(python, "-m", "ndbridge", "run", script); !strings.Contains(got, "it ran") || !strings.Contains(got, "no host can attach") {
			t.Error(got)
		}
	})
	t.Run("Attach", func(t *testing.T) { attachToMusl(t, python) })
}

// attachToMusl attaches to a program that listens. It goes on as if no host had been there.
func attachToMusl(t *testing.T, python string) {
	t.Helper()
	run := harness.RunAlone(t, `
import ndbridge, os, remote
print(ndbridge.listen(), flush=True)
ndbridge.publish("frame", bytearray(100))
def has(): return [len(os.listdir("/proc/self/" + what)) for what in ("fd", "task")], [m for m in open("/proc/self/maps") if "ndbridge" in m]
remote.serve()
`, harness.RunningOptions{Python: python})
	host := harness.NewHost(t)
	before := harness.Eval[[]any](t, run.Remote, "has()")
	for range 3 {
		s, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket))
		if err == nil {
			t.Fatal("a host is attached", s.Close())
		}
		if !errors.Is(err, core.ErrUnavailable) {
			t.Error(err)
		}
		muslRefused(t, fmt.Sprintf("%+v", err))
	}
	harness.Eventually(t, harness.StartBound, "the program has what it had", func() bool {
		return fmt.Sprint(harness.Eval[[]any](t, run.Remote, "has()")) == fmt.Sprint(before)
	})
	if harness.Eval[bool](t, run.Remote, "ndbridge.connected") {
		t.Error("the program has a host")
	}
	if !run.Alive() || run.Stderr() != "" {
		t.Errorf("the program: %s", run.Stderr())
	}
}
