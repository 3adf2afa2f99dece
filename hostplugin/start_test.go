package hostplugin_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// write makes a file in a directory of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStartFailures: everything that can be wrong with a program is an error of the right category
// that names the culprit and, where there is one, the remedy.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	script := write(t, "camera.py", "")
	dir := filepath.Dir(script)
	lib := write(t, "ndbridge-all.so", "no library")
	text := bootstraptest.WriteProgram(t, "text", "just text\n")
	venv := filepath.Join(dir, "venv")
	if err := errors.Join(os.MkdirAll(venv+"/bin", 0o700), os.Symlink("/bin/sh", venv+"/bin/python")); err != nil {
		t.Fatal(err)
	}
	python := func(change func(*hostplugin.Program)) hostplugin.Program {
		p := hostplugin.Program{Name: "p", Script: script, Plugin: lib}
		change(&p)
		return p
	}
	with := func(p hostplugin.Program, change func(*hostplugin.Program)) hostplugin.Program {
		p.StartTimeout = 20 * time.Second
		change(&p)
		return p
	}
	none := func(*hostplugin.Program) {}
	soon := func(p *hostplugin.Program) { p.StartTimeout = 300 * time.Millisecond }
	for _, test := range []struct {
		name    string
		program hostplugin.Program
		kind    error
		want    []string
	}{
		{
			"script missing", python(func(p *hostplugin.Program) { p.Script = dir + "/camra.py" }), core.ErrConfig,
			[]string{"the script " + dir + "/camra.py does not exist", `did you mean "camera.py"?`},
		},
		{
			"script is a directory", python(func(p *hostplugin.Program) { p.Script = dir }), core.ErrConfig,
			[]string{"is a directory without a __main__.py", "name a file in it"},
		},
		{
			"python not on PATH", python(func(p *hostplugin.Program) { p.Python = "python9.99" }), core.ErrConfig,
			[]string{"there is no python9.99 on PATH (", "set python"},
		},
		{
			"python not on the program's PATH",
			python(func(p *hostplugin.Program) { p.Env = map[string]string{"PATH": "/nowhere"} }),
			core.ErrConfig,
			[]string{"there is no python3 on PATH (/nowhere)"},
		},
		{
			"python missing", python(func(p *hostplugin.Program) { p.Python = dir + "/python" }), core.ErrConfig,
			[]string{dir + "/python does not exist", "set python"},
		},
		{
			"python not executable", python(func(p *hostplugin.Program) { p.Python = script }), core.ErrConfig,
			[]string{script + " is not executable"},
		},
		{
			"python is a directory", python(func(p *hostplugin.Program) { p.Python = dir }), core.ErrConfig,
			[]string{dir + " is a directory"},
		},
		{
			"python is a virtual environment", python(func(p *hostplugin.Program) { p.Python = venv }), core.ErrConfig,
			[]string{venv + " is a directory; did you mean " + venv + "/bin/python?"},
		},
		{
			"python is ls", python(func(p *hostplugin.Program) { p.Python = "ls" }), core.ErrConfig,
			[]string{"/ls is not a Python interpreter that works: it ", "its last words:", "set python"},
		},
		{
			"python is echo", python(func(p *hostplugin.Program) { p.Python = "echo" }), core.ErrConfig,
			[]string{"/echo is not a Python interpreter that works"},
		},
		{
			"python is yes", python(func(p *hostplugin.Program) { p.Python = "yes"; p.Env = map[string]string{"POSIXLY_CORRECT": "1"} }),
			core.ErrConfig,
			[]string{"/yes is not a Python interpreter that works"},
		},
		{
			"python is true", python(func(p *hostplugin.Program) { p.Python = "true" }), core.ErrConfig,
			[]string{"/true is not a Python interpreter that works: it exited with status 0", "set python"},
		},
		{
			"python is cat", python(func(p *hostplugin.Program) { p.Python = "cat" }), core.ErrConfig,
			[]string{"/cat is not a Python interpreter that works: it exited with status 1", "; its last words:\n"},
		},
		{
			"python is another implementation", python(func(p *hostplugin.Program) {
				p.Python = os.Getenv("NDBRIDGE_TEST_PYTHON")
				site := write(t, "sitecustomize.py", "import sys; sys.implementation.name = 'pypy'")
				p.Env = map[string]string{"PYTHONPATH": filepath.Dir(site)}
			}), core.ErrVersion,
			[]string{"the interpreter is pypy 3.", "use CPython 3.8 or newer"},
		},
		{
			"python is a shell", python(func(p *hostplugin.Program) { p.Python = "sh" }), core.ErrConfig,
			[]string{"/sh is not a Python interpreter that works"},
		},
		{
			"python sleeps", python(func(p *hostplugin.Program) {
				p.Python = bootstraptest.WriteProgram(t, "python", "#!/bin/sh\nexec sleep 600\n")
				p.StartTimeout = 300 * time.Millisecond
			}), core.ErrConfig,
			[]string{"is not a Python interpreter that works: it did nothing for 300ms"},
		},
		{
			"python starts one for musl", python(func(p *hostplugin.Program) {
				p.Python = bootstraptest.WriteProgram(t, "python", "#!/bin/sh\necho 'Error relocating /x/libndbridge-heap.so: dlvsym: symbol not found' >&2; exit 127\n")
			}), core.ErrUnavailable,
			[]string{"/python starts a Python that is linked with musl", "symbol not found", "python:3-slim"},
		},
		{
			"python is text", python(func(p *hostplugin.Program) { p.Python = text }), core.ErrConfig,
			[]string{text + " is not a Python interpreter that works: exec format error"},
		},
		{
			"plugin missing by path", python(func(p *hostplugin.Program) { p.Plugin = "/nowhere/x.so" }), core.ErrConfig,
			[]string{"the plugin /nowhere/x.so cannot be used: no such file or directory", "build it"},
		},
		{
			"plugin missing by name", python(func(p *hostplugin.Program) { p.Plugin = "al" }), core.ErrConfig,
			[]string{`the plugin "al" (ndbridge-al.so) is not in ` + filepath.Dir(lib) + ",", `did you mean "all"?`},
		},
		{
			"plugin is a directory", python(func(p *hostplugin.Program) { p.Plugin = dir }), core.ErrConfig,
			[]string{"the plugin " + dir + " is a directory"},
		},
		{
			"wrong checksum", with(fake("serve"), func(p *hostplugin.Program) {
				p.Checksum = "sha256:" + strings.Repeat("0", 64)
			}), core.ErrConfig,
			[]string{"expected checksum sha256:0000", "got sha256:", "find out who changed the file"},
		},
		{
			"executable without the bit",
			hostplugin.Program{Name: "p", Plugin: lib},
			core.ErrConfig,
			[]string{"the plugin " + lib + " is not executable", "set script or module"},
		},
		{
			"executable is text",
			hostplugin.Program{Name: "p", Plugin: text},
			core.ErrConfig,
			[]string{text + " is not a program for this machine: exec format error"},
		},
		{
			"no working directory", with(fake("serve"), func(p *hostplugin.Program) { p.Dir = "/nowhere" }), core.ErrConfig,
			[]string{"the working directory /nowhere does not exist", "correct dir"},
		},
		{
			"working directory is a file", with(fake("serve"), func(p *hostplugin.Program) { p.Dir = script }),
			core.ErrConfig,
			[]string{script + " is not a directory"},
		},
		{
			"exits at once", with(fake("exit"), none), core.ErrUnavailable,
			[]string{`the program exited with status 7 before it was ready; its last words: "no reason at all"`},
		},
		{
			"never answers", with(fake("hang"), soon), core.ErrUnavailable,
			[]string{"the plugin did not answer within 300ms", "raise start_timeout"},
		},
		{
			"no plugin", with(fake("babble"), none), core.ErrProtocol,
			[]string{`is not a plugin: it printed "I am not a plugin." instead of a handshake`},
		},
		{
			"another version", with(fake("old"), none), core.ErrVersion,
			[]string{"speaks version 1.99 of the protocol, this host version 1.1", "of the same release"},
		},
		{
			"socket elsewhere", with(fake("elsewhere"), none), core.ErrProtocol,
			[]string{`the plugin listens at tcp "127.0.0.1:22", expected a unix socket`},
		},
		{
			"socket not sent", with(fake("no-socket"), none), core.ErrProtocol,
			[]string{"the plugin did not open a session", "the plugin has not sent the socket at which it listens"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := newHostWith(t, hostplugin.Config{Programs: []hostplugin.Program{test.program}, LibDirs: []string{filepath.Dir(lib)}})
			s, err := host.Start(t.Context(), test.program.Name)
			if s != nil || !errors.Is(err, test.kind) {
				t.Fatalf("Start = %v, %v; want %v", s, err, test.kind)
			}
			for _, want := range append(test.want, "start "+test.program.Name+": "+test.kind.Error()+": ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Start = %v\nwant %q", err, want)
				}
			}
		})
	}
}

func TestStartObeysContextAndClose(t *testing.T) {
	t.Parallel()
	reason := errors.New("changed my mind")
	host := newHost(t, fake("hang"))
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(reason) })
	if _, err := host.Start(ctx, "fake"); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("cancelled Start = %v", err)
	}
	deadline, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := host.Start(deadline, "fake"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start with a deadline = %v", err)
	}
	if _, err := host.Start(ctx, "fake"); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a context that has ended = %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := host.Start(t.Context(), "fake"); !errors.Is(err, core.ErrClosed) {
			t.Errorf("Start beside Close = %v", err)
		}
	})
	time.Sleep(100 * time.Millisecond)
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestStartUnknownProgram(t *testing.T) {
	t.Parallel()
	_, err := newHost(t, fake("serve")).Start(t.Context(), "fkae")
	if !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), `did you mean "fake"?`) {
		t.Errorf("Start = %v", err)
	}
}

func TestChecksumOfTheRightFile(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(exe())
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, func(p *hostplugin.Program) { p.Checksum = fmt.Sprintf("sha256:%x", sha256.Sum256(b)) })
	closeView(t, view(t, s, "scalar"))
}

// TestLongTemporaryDirectory: the path of a Unix socket has a limit that TMPDIR has not.
func TestLongTemporaryDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	s := start(t)
	closeView(t, view(t, s, "scalar"))
}

// TestPluginByName: an ordinary executable is looked up like the others, without the ".so".
func TestPluginByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(exe(), filepath.Join(dir, "ndbridge-fake")); err != nil {
		t.Fatal(err)
	}
	p := fake("serve")
	p.Plugin = "fake"
	s, err := newHostWith(t, hostplugin.Config{Programs: []hostplugin.Program{p}, LibDirs: []string{dir}}).
		Start(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	closeView(t, view(t, s, "scalar"))
}

func TestOpen(t *testing.T) {
	t.Parallel()
	path := write(t, "nd.hcl", fmt.Sprintf(`program "fake" {
		plugin = %q
		env    = { %s = "serve" }
	}`, exe(), fakeVariable))
	host, err := hostplugin.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	s, err := host.Start(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	closeView(t, view(t, s, "scalar"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hostplugin.Open(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a context that has ended = %v", err)
	}
	if _, err := hostplugin.Open(t.Context(), path+"x"); !errors.Is(err, core.ErrConfig) {
		t.Errorf("Open of a missing file = %v", err)
	}
	if _, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{{}}}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("New with a mistake = %v", err)
	}
}
