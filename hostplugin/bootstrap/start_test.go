package bootstrap_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

func TestStatusOfStart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := bootstraptest.Start(t, bootstraptest.Program{Python: python, Plugin: standin, Target: script(t, "print(1)")})
		m := proc.Next(t, "python")
		want := strings.TrimSpace(plain(t, python, "", "-c",
			"import sys; print('%d.%d.%d' % sys.version_info[:3], sys.implementation.name, sys.executable)").stdout)
		if got := m.Text("version") + " " + m.Text("implementation") + " " + m.Text("executable"); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		proc.Next(t, "loaded")
		if fd, _ := proc.Next(t, "start")["number"].(float64); fd < 3 {
			t.Errorf("the handshake is descriptor %v", fd)
		}
		proc.Next(t, "finished")
	})
}

// site makes a folder with modules that Python finds before its own, and gives its environment.
func site(t *testing.T, name, text string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"PYTHONPATH=" + dir}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	nothing := filepath.Join(t.TempDir(), "no\u00e4 \"such\"\n\U0001f600.py")
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		p       bootstraptest.Program
		kind    string
		message string
		remedy  string
	}{
		"no script": {
			bootstraptest.Program{Target: nothing},
			"config", "the script " + nothing + ": No such file or directory", "script",
		},
		"no plugin": {
			bootstraptest.Program{Plugin: "/nowhere/plugin.so"},
			"unavailable", "/nowhere/plugin.so: cannot open shared object file", "glibc",
		},
		"not a library": {bootstraptest.Program{Plugin: text}, "unavailable", "file too short", "glibc"},
		"no ctypes": {
			bootstraptest.Program{Env: site(t, "ctypes.py", "raise ImportError('no _ctypes')")},
			"unavailable", "this Python has no ctypes: no _ctypes", "libffi",
		},
		"no glibc": {
			bootstraptest.Program{Env: site(t, "ctypes.py", "class PyDLL:\n    def __init__(self, path): pass")},
			"unavailable", "this Python is linked with a C library other than glibc", "Debian",
		},
		"old": {
			bootstraptest.Program{Env: site(t, "sitecustomize.py", "import sys\nsys.version_info = (3, 7, 17, 'final', 0)")},
			"version", "the interpreter is Python 3.7.17", "3.8",
		},
		"free-threaded": {
			bootstraptest.Program{Env: site(t, "sitecustomize.py", "import sys\nsys.abiflags = 't'")},
			"version", "the interpreter is the free-threaded Python 3.", "GIL",
		},
		"not CPython": {
			bootstraptest.Program{Env: site(t, "sitecustomize.py", "import sys\nsys.implementation.name = 'pypy'")},
			"version", "the interpreter is pypy 3.", "CPython",
		},
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := tt.p
				p.Python = python
				if p.Plugin == "" {
					p.Plugin = standin
				}
				if p.Target == "" {
					p.Target = script(t, "print('ran')")
				}
				proc := bootstraptest.Start(t, p)
				proc.Next(t, "python")
				m := proc.Next(t, "error")
				if m.Text("kind") != tt.kind || !strings.Contains(m.Text("message"), tt.message) ||
					!strings.Contains(m.Text("remedy"), tt.remedy) {
					t.Errorf("%v", m)
				}
				if state := proc.Wait(t); state.ExitCode() != 1 || proc.Stdout()+proc.Stderr() != "" {
					t.Errorf("%v\nstdout: %s\nstderr: %s", state, proc.Stdout(), proc.Stderr())
				}
			})
		}
	})
}

// The interpreters that are too old to be used can still be told apart, where there are any.
func TestOldInterpreters(t *testing.T) {
	t.Parallel()
	pythons := []string{"python2", "python2.7", "python3.5", "python3.6", "python3.7"} // on PATH, or under pyenv
	for _, minor := range []string{"2.7", "3.5", "3.6", "3.7"} {
		found, err := filepath.Glob(filepath.Join(pyenv(t), "versions", minor+".*", "bin", "python"))
		if err != nil {
			t.Fatal(err)
		}
		pythons = append(pythons, found...)
	}
	for _, name := range pythons {
		python, err := exec.LookPath(name)
		if err != nil || exec.CommandContext(t.Context(), python, "-c", "pass").Run() != nil {
			continue // TestStartFails has the same on any machine, but for the syntax
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc := bootstraptest.Start(t, bootstraptest.Program{Python: python, Plugin: standin, Target: "x.py"})
			version := proc.Next(t, "python").Text("version")
			m := proc.Next(t, "error")
			if m.Text("kind") != "version" || !strings.Contains(m.Text("message"), "Python "+version) {
				t.Errorf("%v", m)
			}
			if state := proc.Wait(t); state.ExitCode() != 1 || proc.Stderr() != "" {
				t.Errorf("%v: %s", state, proc.Stderr())
			}
		})
	}
}

// pyenv gives the directory of pyenv, which need not exist.
func pyenv(t *testing.T) string {
	t.Helper()
	if root := os.Getenv("PYENV_ROOT"); root != "" {
		return root
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".pyenv")
}

func TestStartedByHand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		cmd := exec.CommandContext(t.Context(), python, bootstrap.Args(standin, bootstrap.Script, "x.py")...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "run by a host, not by hand") ||
			strings.Contains(stderr.String(), "Traceback") {
			t.Errorf("%v: %s", err, stderr.String())
		}
	})
}

func TestModule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := start(t, bootstraptest.Program{Python: python, Target: script(t,
			"import ndbridge, importlib, pydoc, sys",
			"print(ndbridge.__version__, ndbridge.__all__, sorted(n for n in dir(ndbridge) if n[0] != '_'))",
			"print(ndbridge.publish.__module__, ndbridge.publish.__qualname__, importlib.import_module('ndbridge') is ndbridge)",
			"help = pydoc.plain(pydoc.render_doc(ndbridge))",
			"print('publish(name, array=Ellipsis)' in help, 'Hands arrays' in help, ndbridge.publish.__doc__.count('RuntimeError'))",
			"print(ndbridge.publish('a', object()), ndbridge.unpublish('a'))",
			"print('ndbridge' in globals() and '_' not in [n[:1] for n in globals() if n[:2] != '__'])",
		)})
		if m := proc.Next(t, "publish"); m["number"] != 1.0 {
			t.Errorf("%v", m)
		}
		proc.Next(t, "unpublish")
		proc.Next(t, "finished")
		proc.End(t)
		proc.Wait(t)
		const want = "1.2.3 ['Cancelled', 'HostError', 'connected', 'host', 'listen', 'publish', 'serve', 'unpublish', 'wait'] ['Cancelled', 'HostError', 'connected', 'host', 'listen', 'publish', 'serve', 'unpublish', 'wait']\nndbridge publish True\nTrue True 1\nNone None\nTrue\n"
		if proc.Stdout() != want {
			t.Errorf("stdout: %s\nstderr: %s", proc.Stdout(), proc.Stderr())
		}
	})
}

func TestProgramMayCloseItsOutput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		for name, line := range map[string]string{
			"descriptor": "os.close(1)", "stream": "sys.stdout.close()", "all": "sys.stdout = sys.stderr = None; os.close(1); os.close(2)",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := script(t, "import os, sys", "print('open')", "sys.stdout.flush()", line)
				want := plain(t, python, "", path)
				got, ending := hosted(t, bootstraptest.Program{Python: python, Target: path})
				if got.status != want.status || ending.Text("stage") != "finished" {
					t.Errorf("%+v, %v; want %+v", got, ending, want)
				}
				diff(t, "stdout", got.stdout, want.stdout)
				diff(t, "stderr", got.stderr, want.stderr)
			})
		}
	})
}

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	got, _ := hosted(t, bootstraptest.Program{Python: bootstraptest.Interpreters(t)["3.11"], Target: script(t,
		"import sys", "for _ in range(64): sys.stdout.write('x' * (1 << 20))")})
	if len(got.stdout) != size || got.status != 0 {
		t.Errorf("%d bytes, status %d", len(got.stdout), got.status)
	}
}

// The parent-death signal is the host's means until the session is open, and in the way afterwards: it
// would kill a program whose host merely ends the thread that started it. A SIGCONT is in nobody's way, and lets
// a stopped program see that its host is gone.
func TestParentDeathSignalKillsNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		path := script(t,
			"import ctypes",
			"signal = ctypes.c_int(-1)",
			"ctypes.CDLL(None).prctl(2, ctypes.byref(signal))", // PR_GET_PDEATHSIG
			"print(signal.value)",
		)
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: path})
		if got.stdout != fmt.Sprintf("%d\n", syscall.SIGCONT) {
			t.Errorf("%+v", got)
		}
	})
}
