package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// shared is a command below "ndbridge run --share".
type shared struct {
	*exec.Cmd

	run            string // where its sockets are
	stdin          io.Closer
	stdout, stderr bootstraptest.Buffer
}

// share readies a command whose Pythons let hosts of this process come to them. Its sockets are in a directory of its own.
func share(t *testing.T, flags []string, command ...string) *shared {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	args := append(append([]string{"run", "--share", "--log-level", "debug"}, flags...), "--")
	s := &shared{Cmd: exec.Command(bridge(t), append(args, command...)...), run: filepath.Join(dir, "ndbridge")} //nolint:noctx // the test's end kills it
	s.Env = append(os.Environ(), "PYTHONWARNINGS=")
	s.Stdout, s.Stderr = &s.stdout, &s.stderr
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return s
}

// start runs it until the test ends, or its input.
func (s *shared) start(t *testing.T) {
	t.Helper()
	stdin, err := s.StdinPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	t.Cleanup(func() {
		_ = syscall.Kill(-s.Process.Pid, syscall.SIGKILL)
		_ = s.Wait()
		if t.Failed() {
			t.Logf("the command's output:\n%s\n%s", s.stdout.String(), s.stderr.String())
		}
	})
}

// end lets it end, by the end of its input, and gives its status.
func (s *shared) end(t *testing.T) int {
	t.Helper()
	if err := s.stdin.Close(); err != nil {
		t.Error(err)
	}
	_ = s.Wait()
	return s.ProcessState.ExitCode()
}

// left lists the sockets that are there.
func (s *shared) left(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.run)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// attach comes to a program of the command, as soon as it listens.
func (s *shared) attach(t *testing.T, host *hostplugin.Host, target hostplugin.Target) *hostplugin.Session {
	t.Helper()
	var session *hostplugin.Session
	harness.Eventually(t, harness.StartBound, "the program listens", func() bool {
		var err error
		session, err = host.Attach(t.Context(), target)
		if err != nil && !errors.Is(err, core.ErrNotFound) && !errors.Is(err, core.ErrVersion) {
			t.Fatal(err)
		}
		return err == nil
	})
	return session
}

const reads = `
import sys
import numpy as np
x = np.full(1 << 17, 2.0)
sys.stdin.read()
sys.exit(7)
`

// TestShare: below "ndbridge run --share" a program of any Python listens, with the shared heap in it, whatever its options are. It does
// not notice, its status is its own, and nothing is left of it.
func TestShare(t *testing.T) {
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(reads), 0o600); err != nil {
		t.Fatal(err)
	}
	host := harness.NewHost(t)
	for _, python := range append(harness.Pythons(t), harness.Python(t)) {
		for name, c := range map[string]struct{ flags, command []string }{
			"train":    {nil, []string{python, script}},
			"train.3":  {nil, []string{"env", "RANK=3", python, "-I", "-X", "utf8", "-Wignore", script}},
			"given.12": {[]string{"--name", "given"}, []string{"sh", "-c", "SLURM_PROCID=12 " + python + " -u " + script}},
		} {
			if name != "train" && python != harness.Python(t) {
				continue
			}
			s := share(t, c.flags, c.command...)
			s.start(t)
			session := s.attach(t, host, hostplugin.Name(name))
			v, err := session.View(t.Context(), "x")
			if err != nil {
				t.Fatalf("%s: %v", python, err)
			}
			if data := slice[float64](t, v); data[5] != 2 || v.Route() != contract.RouteSharedHeap {
				t.Errorf("%s: %v, %v, %v", python, data[5], v.Route(), v.Reason())
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if status := s.end(t); status != 7 {
				t.Errorf("%s: status %d\n%s", python, status, s.stderr.String())
			}
			if left := s.left(t); len(left) != 0 || s.stderr.String() != "" {
				t.Errorf("%s: left %v, said %s", python, left, s.stderr.String())
			}
		}
	}
}

// TestShareChangesNothing compares what a program sees of itself with what it sees without "run --share".
func TestShareChangesNothing(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sitecustomize.py": "import sys\nsys.customized = __file__\n",
		"seen.py": `
import gc, os, signal, sys, threading, warnings
before = {k: v for k, v in os.environ.items() if k.startswith("PYTHON")}
print(sys.path, sys.customized, sorted(sys.modules), sorted(before.items()), sys.flags, sys.argv, threading.active_count())
print(len(sys._current_frames()), [signal.getsignal(n) for n in range(1, 32)], signal.pthread_sigmask(signal.SIG_BLOCK, []), sorted(sys.warnoptions))
print([os.open("/dev/null", os.O_RDONLY) for _ in range(3)], len(os.listdir("/proc/self/fd")) - (os.environ.get("NDBRIDGE_HEAP_LISTEN") is not None), os.getpgrp() == os.getpid(), gc.get_count()[2], sorted(globals()))
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, python := range append(harness.Pythons(t), harness.Python(t)) {
		s := share(t, nil, python, filepath.Join(dir, "seen.py"), "a")
		s.Env = append(s.Env, "PYTHONPATH="+dir, "PYTHONHASHSEED=0")
		if err := s.Run(); err != nil {
			t.Errorf("%s: %v\n%s", python, err, s.stderr.String())
		}
		alone := exec.CommandContext(t.Context(), python, filepath.Join(dir, "seen.py"), "a")
		alone.Env, alone.SysProcAttr = s.Env, s.SysProcAttr
		out, err := alone.Output()
		if err != nil || string(out) != s.stdout.String() {
			t.Errorf("%s: %v\nwith:    %s\nwithout: %s", python, err, s.stdout.String(), out)
		}
	}
}

// TestShareEnds: a command's status and the signals that it gets are its own, and no Python leaves its socket, however it ends by itself.
func TestShareEnds(t *testing.T) {
	python := harness.Python(t)
	wait := "import os, time\nwhile not os.listdir(os.environ['XDG_RUNTIME_DIR'] + '/ndbridge'): time.sleep(0.001)\n"
	for name, c := range map[string]struct {
		command []string
		status  int
		said    string
	}{
		"exits":          {[]string{python, "-c", wait + "raise SystemExit(3)"}, 3, ""},
		"short":          {[]string{python, "-c", "pass"}, 0, ""},
		"_exit":          {[]string{python, "-c", wait + "os._exit(4)"}, 4, ""},
		"forks":          {[]string{python, "-c", wait + "p = os.fork()\nif not p: time.sleep(0.2); os._exit(5)\nraise SystemExit(os.waitpid(p, 0)[1] >> 8)"}, 5, ""},
		"execs":          {[]string{python, "-c", wait + "os.execl('" + python + "', 'python3', '-c', 'import time; time.sleep(0.3)')"}, 0, ""},
		"vforks":         {[]string{python, "-c", wait + "import subprocess\ntry: subprocess.Popen(['/nowhere'])\nexcept OSError: raise SystemExit(len(os.listdir(os.environ['XDG_RUNTIME_DIR'] + '/ndbridge')))"}, 1, ""},
		"pool":           {[]string{python, "-c", wait + "import multiprocessing as m\nwith m.get_context('fork').Pool(3) as p: p.map(abs, range(9)); p.close(); p.join()"}, 0, ""},
		"signal":         {[]string{"sh", "-c", "kill -TERM $$"}, -1, ""},
		"no such":        {[]string{"no-such-command"}, 127, `exec: "no-such-command": executable file not found in $PATH`},
		"not executable": {[]string{"/etc/passwd"}, 126, "permission denied"},
	} {
		s := share(t, nil, c.command...)
		err := s.Run()
		if status := s.ProcessState.ExitCode(); status != c.status || !strings.Contains(s.stderr.String(), c.said) {
			t.Errorf("%s: status %d, want %d: %v\n%s", name, status, c.status, err, s.stderr.String())
		}
		if left := s.left(t); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

const forksAtOnce = `
import os, sys
if os.fork() == 0:
    os.closerange(3, 4096)
    sys.stdin.read()
    os._exit(0)
if os.fork() == 0:
    os.fork()
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
`

// TestShareForkedAtOnce: a child listens also if it closes all that it has not opened before it does, as a daemon, and one that forks
// before it does leaves its socket to nobody.
func TestShareForkedAtOnce(t *testing.T) {
	s := share(t, []string{"--name", "daemon"}, harness.Python(t), "-c", forksAtOnce)
	s.start(t)
	host := harness.NewHost(t)
	session := s.attach(t, host, hostplugin.PID(s.Process.Pid))
	var children []hostplugin.Child
	harness.Eventually(t, harness.StartBound, "three children listen", func() bool {
		var err error
		if children, err = session.Children(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(children) == 3 && !slices.ContainsFunc(children, func(c hostplugin.Child) bool { return c.Err != nil })
	})
	i := slices.IndexFunc(children, func(c hostplugin.Child) bool { return c.Parent != s.Process.Pid })
	between := children[i].Parent
	if err := syscall.Kill(between, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.run, fmt.Sprintf("daemon.%d", between))
	harness.Eventually(t, harness.StartBound, "nobody listens in the place of one that was killed", func() bool {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "unixpacket", path)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	s.end(t)
}

// TestShareLikeNames: a host that cannot tell two programs apart by their name comes to neither.
func TestShareLikeNames(t *testing.T) {
	const counts = "import os, sys; m = sys.modules['ndbridge'] = type(sys)('ndbridge'); " +
		"m._come = lambda m, fd: (os.write(1, b'come '), os.close(fd)); open(sys.argv[1] + '/%d' % os.getpid(), 'w'); os.read(0, 1)"
	dir := t.TempDir()
	s := share(t, []string{"--name", "like"}, "sh", "-c", `exec 3<&0; "$0" -c "$1" "$2" <&3 & "$0" -c "$1" "$2" <&3 & wait`, harness.Python(t), counts, dir)
	s.start(t)
	harness.Eventually(t, harness.StartBound, "both run and listen", func() bool {
		running, err := os.ReadDir(dir)
		return err == nil && len(running) == 2 && len(s.left(t)) == 2
	})
	host := harness.NewHost(t)
	attach := func(target hostplugin.Target, kind error) {
		session, err := host.Attach(t.Context(), target)
		if session != nil {
			_ = session.Close()
		}
		if !errors.Is(err, kind) {
			t.Errorf("%v; want %v", err, kind)
		}
	}
	attach(hostplugin.Name("like"), core.ErrConfig)
	for _, name := range s.left(t) { // each lets in one after the other
		attach(hostplugin.Socket(filepath.Join(s.run, name)), core.ErrUnavailable)
	}
	s.end(t)
	if come := s.stdout.String(); come != "come come " {
		t.Errorf("hosts have come: %q", come)
	}
}

// TestShareWithout: where no socket can be, a program runs as without ndbridge, and says why on request alone.
func TestShareWithout(t *testing.T) {
	for name, directory := range map[string]string{
		"a file": os.Args[0], "not there": "/proc/nowhere", "others' too": "/tmp", "long": t.TempDir() + strings.Repeat("/.", 40),
	} {
		s := share(t, nil, "env", "-u", "NDBRIDGE_HEAP_SAY", "NDBRIDGE_HEAP_LISTEN="+directory, harness.Python(t), "-c", "import time; time.sleep(0.2); print('runs')")
		if err := s.Run(); err != nil || s.stdout.String() != "runs\n" || s.stderr.String() != "" {
			t.Errorf("%s: %v, %q, %q", name, err, s.stdout.String(), s.stderr.String())
		}
	}
	s := share(t, nil, "env", "NDBRIDGE_HEAP_LISTEN=/tmp", harness.Python(t), "-c", "import time; time.sleep(0.5)")
	if err := s.Run(); err != nil || !strings.Contains(s.stderr.String(), "does not listen as python: ") {
		t.Errorf("on request: %v, %q", err, s.stderr.String())
	}
}

// TestShareSignals: a signal for the command is the program's, and so is one that is ignored.
func TestShareSignals(t *testing.T) {
	s := share(t, nil, harness.Python(t), "-c", `
import signal, sys, time
try:
    print(int(signal.getsignal(signal.SIGHUP)), signal.getsignal(signal.SIGINT).__name__, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(9)
`)
	s.Args = append([]string{"nohup", s.Path}, s.Args[1:]...)
	s.Path = "/usr/bin/nohup"
	s.start(t)
	harness.Eventually(t, harness.StartBound, "it sleeps", func() bool { return strings.HasSuffix(s.stdout.String(), "\n") })
	if err := s.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != 9 || s.stdout.String() != "1 default_int_handler\n" {
		t.Errorf("status %d, %q", status, s.stdout.String())
	}
}

// TestShareHost: a program that a host starts below "ndbridge run --share" has that host alone, and it and its children have that host's heap,
// not that of the command.
func TestShareHost(t *testing.T) {
	dir := t.TempDir()
	script, other := filepath.Join(dir, "started.py"), filepath.Join(dir, "libndbridge-heap.so")
	heap, err := os.ReadFile(harness.Library(t, "libndbridge-heap.so"))
	if err == nil {
		err = errors.Join(os.WriteFile(other, heap, 0o600), os.WriteFile(script, []byte(`
import os, subprocess, sys, time
import numpy as np
x = np.full(1 << 17, 2.0)
time.sleep(0.2)
heaps = {l.split()[-1] for l in open("/proc/self/maps") if "libndbridge-heap" in l}
child = subprocess.run([sys.executable, "-c", "print(len({l.split()[-1] for l in open('/proc/self/maps') if 'libndbridge-heap' in l}))"], stdout=subprocess.PIPE)
clean = np.array([len(heaps), len(os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/ndbridge")), os.environ.get("LD_PRELOAD") is not None, int(child.stdout)])
`), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := share(t, nil, "env", "NDBRIDGE_LIB="+harness.Library(t, ""), bridge(t), "view", "--script", script, "--python", harness.Python(t), "--color", "never", "x", "clean")
	s.Env = append(s.Env, "NDBRIDGE_LIB="+dir)
	if err := s.Run(); err != nil {
		t.Fatalf("%v\n%s", err, s.stderr.String())
	}
	if said := s.stdout.String(); !strings.Contains(said, "shared-heap") || !strings.Contains(said, "1  0  0  1") {
		t.Errorf("%s", said)
	}
}
