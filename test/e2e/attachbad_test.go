package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachAfterBadHosts: hosts that say nothing, say something else, or go in the middle of an attachment do a program no harm: it goes
// on, holds nothing of theirs, and lets the next host in.
func TestAttachAfterBadHosts(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, numpy as np, os, remote, signal
print(ndbridge.listen(), flush=True)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which ends the process if anything writes to a host that is gone
x = np.full(1 << 17, 1.0)
def descriptors(): return len(os.listdir("/proc/self/fd"))
remote.serve()
`, harness.RunningOptions{Heap: true})
	host := harness.NewHost(t)
	if err := run.Attach(t, host).Close(); err != nil { // what is opened once is there
		t.Fatal(err)
	}
	plugin := harness.Library(t, "ndbridge-all.so")
	before := 0
	harness.Eventually(t, harness.StartBound, "the first host has left", func() bool {
		last := before
		before = harness.Eval[int](t, run.Remote, "descriptors()")
		return last == before
	})
	send := func(side *fdpass.Conn, code []byte, n int) {
		file, err := os.Open(plugin)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		conn, theirs, err := fdpass.StreamPair()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		defer theirs.Close()
		_ = side.Send(code, []*os.File{file, theirs, file, file}[:n]...) // the program may have hung up
	}
	for name, bad := range map[string]func(side *fdpass.Conn){
		"nothing":        func(*fdpass.Conn) {},
		"a byte":         func(side *fdpass.Conn) { _ = side.Send([]byte("x")) },
		"no code":        func(side *fdpass.Conn) { send(side, []byte("\x00\xff def"), 2) },
		"an exception":   func(side *fdpass.Conn) { send(side, []byte("raise SystemExit(3)"), 2) },
		"one descriptor": func(side *fdpass.Conn) { send(side, bootstrap.AttachCode(plugin), 1) },
		"three":          func(side *fdpass.Conn) { send(side, bootstrap.AttachCode(plugin), 3) },
		"gone at once":   func(side *fdpass.Conn) { send(side, bootstrap.AttachCode(plugin), 2) },
		"gone after the first word": func(side *fdpass.Conn) {
			send(side, bootstrap.AttachCode(plugin), 2)
			_, _, _ = side.Recv()
		},
		"gone when it was let in": func(side *fdpass.Conn) {
			send(side, bootstrap.AttachCode(plugin), 2)
			for range 3 {
				_, _, _ = side.Recv()
			}
		},
	} {
		for range 3 {
			side, peer, err := fdpass.Dial(t.Context(), run.Socket)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if peer.PID != run.PID || peer.UID != os.Getuid() {
				t.Errorf("process %d of user %d listens, want %d", peer.PID, peer.UID, run.PID)
			}
			bad(side)
			if err := side.Close(); err != nil {
				t.Error(err)
			}
		}
		s := run.Attach(t, host)
		if slice[float64](t, s.View(t, "x"))[3] != 1 {
			t.Errorf("after %s: another value", name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	harness.Eventually(t, harness.StartBound, "the program holds nothing of theirs", func() bool {
		return harness.Eval[int](t, run.Remote, "descriptors()") <= before
	})
}

// TestAttachHostIsKilled: when a host is killed, its session ends in the program, and what it had leased is the program's again.
func TestAttachHostIsKilled(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	other := exec.Command(os.Args[0]) //nolint:noctx // it is killed below
	other.Env = append(os.Environ(), attachEnv+"="+run.Socket)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, _ := out.Read(said)
	if got := string(said[:n]); got != "sees 1\n" {
		t.Errorf("the host says %q", got)
	}
	if !harness.Eval[bool](t, run.Remote, "ndbridge.connected") {
		t.Error("the program has no host")
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	becomesTrue(t, &harness.Run{Remote: run.Remote}, "not ndbridge.connected")
	s := run.Attach(t, harness.NewHost(t))
	if n := s.Leases(t); n != 0 {
		t.Errorf("%d leases", n)
	}
}

// attachEnv makes the test's binary a host that attaches to the program at that socket, and stays.
const attachEnv = "NDBRIDGE_TEST_ATTACH"

// runAttached stays until it is killed, or gives why it cannot.
func runAttached(socket string) error {
	host, err := hostplugin.New(hostplugin.Config{})
	if err != nil {
		return err
	}
	s, err := host.Attach(contextOfProcess(), hostplugin.Socket(socket))
	if err != nil {
		return err
	}
	v, err := s.View(contextOfProcess(), "x")
	if err != nil {
		return err
	}
	data, err := core.Slice[float64](v)
	if err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString("sees " + strconv.Itoa(int(data[3])) + "\n")
	select {}
}

// TestAttachErrors: an error says what is wrong with a target, and what helps.
func TestAttachErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := harness.RunAlone(t, listening, harness.RunningOptions{})
	gone := harness.RunAlone(t, listening, harness.RunningOptions{})
	if err := syscall.Kill(gone.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone.Wait()
	host := harness.NewHost(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of the one call
		target hostplugin.Target
		kind   error
		want   string
	}{
		"no socket":      {t.Context(), hostplugin.Socket(filepath.Join(dir, "none")), core.ErrNotFound, "there is no socket at"},
		"an empty path":  {t.Context(), hostplugin.Socket(""), core.ErrNotFound, "there is no socket at"},
		"a long path":    {t.Context(), hostplugin.Socket(filepath.Join(dir, strings.Repeat("n", 150))), core.ErrNotFound, "there is no socket at"},
		"a file":         {t.Context(), hostplugin.Socket(file), core.ErrUnavailable, "connection refused"},
		"has ended":      {t.Context(), hostplugin.Socket(gone.Socket), core.ErrUnavailable, "has ended"},
		"nobody":         {t.Context(), hostplugin.Name("nobody-is-called-so"), core.ErrNotFound, `ndbridge.listen("nobody-is-called-so")`},
		"an ended ctx":   {ended, hostplugin.Socket(run.Socket), context.Canceled, ""},
		"no target":      {t.Context(), hostplugin.Target{}, core.ErrConfig, "Socket, Name or PID"},
		"no process":     {t.Context(), hostplugin.PID(1 << 30), core.ErrNotFound, "there is no such process"},
		"process -1":     {t.Context(), hostplugin.PID(-1), core.ErrNotFound, "there is no such process"},
		"no Python":      {t.Context(), hostplugin.PID(os.Getpid()), core.ErrNotFound, "runs no Python"},
		"elsewhere":      {t.Context(), hostplugin.PID(run.PID), core.ErrVersion, "older than 3.14"},
		"an empty name":  {t.Context(), hostplugin.Name(""), core.ErrNotFound, "listens under this name"},
		"a name of path": {t.Context(), hostplugin.Name("../x"), core.ErrNotFound, "listens under this name"},
	} {
		_, err := host.Attach(c.ctx, c.target)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "attach") {
			t.Errorf("%s: %v; want %v, with %q", name, err, c.kind, c.want)
		}
	}
	stopped := harness.RunAlone(t, listening, harness.RunningOptions{})
	if err := syscall.Kill(stopped.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := host.Attach(short, hostplugin.Socket(stopped.Socket)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stopped program: %v", err)
	}
	if err := syscall.Kill(stopped.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	stopped.Attach(t, host)
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if _, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket)); !errors.Is(err, core.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if harness.Eval[int](t, run.Remote, "1") != 1 || !run.Alive() || !stopped.Alive() {
		t.Error("a program has ended")
	}
}

// TestAttachByName finds a program by its name among those of this user, and refuses to choose.
func TestAttachByName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir) // of this process's host, too
	one := harness.RunAlone(t, listening, harness.RunningOptions{Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	host := harness.NewHost(t)
	attach := func(name string) error {
		s, err := host.Attach(t.Context(), hostplugin.Name(name))
		if err != nil {
			return err
		}
		info, err := s.Info(t.Context())
		if err != nil || info.PID != one.PID || info.Program != name {
			t.Errorf("%+v, %v", info, err)
		}
		return s.Close()
	}
	if err := attach("trainer"); err != nil {
		t.Error(err)
	}
	if s, err := host.Attach(t.Context(), hostplugin.PID(one.PID)); err != nil || s.Close() != nil {
		t.Error(err)
	}
	if err := attach("trainor"); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), `did you mean "trainer"`) && !strings.Contains(err.Error(), "trainer") {
		t.Errorf("%v", err)
	}
	two := harness.RunAlone(t, listening, harness.RunningOptions{Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	if err := attach("trainer"); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), one.Socket) || !strings.Contains(err.Error(), two.Socket) {
		t.Errorf("two of one name: %v", err)
	}
	if err := syscall.Kill(two.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	two.Wait()
	if err := attach("trainer"); err != nil {
		t.Errorf("what a killed program has left: %v", err)
	}
	if _, err := os.Stat(two.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestAttachAwaits: a host that is to wait for a program comes to it when it has begun, or says at the end of its context what is missing.
func TestAttachAwaits(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	host := harness.NewHost(t)
	fails := func(target hostplugin.Target, kind error, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := host.Attach(ctx, target.Await()); !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %v, with %q", err, kind, want)
		}
	}
	fails(hostplugin.Name("trainer"), context.DeadlineExceeded, "the program has not begun to listen: no program of this user listens under this name")
	fails(hostplugin.Socket(filepath.Join(dir, "none")), context.DeadlineExceeded, "the program has not begun to listen: there is no socket at")
	fails(hostplugin.PID(1<<30), core.ErrNotFound, "there is no such process")
	come := make(chan *hostplugin.Session)
	for _, target := range []hostplugin.Target{hostplugin.Name("trainer"), hostplugin.Socket(filepath.Join(dir, "socket"))} {
		go func() {
			s, err := host.Attach(t.Context(), target.Await())
			if err != nil {
				t.Error(err)
			}
			come <- s
		}()
	}
	harness.RunAlone(t, listening, harness.RunningOptions{Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	harness.RunAlone(t, "import ndbridge, os, remote; print(ndbridge.listen(path=os.environ['XDG_RUNTIME_DIR'] + '/socket'), flush=True); remote.serve()",
		harness.RunningOptions{Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	for range 2 {
		if s := <-come; s != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	silent := harness.RunAlone(t, "print('runs', flush=True); import time; time.sleep(1000)", harness.RunningOptions{})
	fails(hostplugin.PID(silent.PID), context.DeadlineExceeded, "has not begun to listen: the process runs a Python older than 3.14")
}

// TestAttachRefusesOthers: a program lets in nobody but its own user and root, whatever the socket's mode is.
func TestAttachRefusesOthers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can be two users")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "ndbridge-test") //nolint:usetesting // others cannot reach a test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	run := harness.RunAlone(t, `
import ndbridge, os, remote, sys
path = ndbridge.listen(path=sys.argv[0] and os.environ["SOCKET"])
os.chmod(path, 0o777)
print(path, flush=True)
remote.serve()
`, harness.RunningOptions{Env: []string{"SOCKET=" + socket}})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// As nobody: it sends code that would end the program, and says what it gets.
	client := exec.CommandContext(t.Context(), "/usr/bin/env", "python3", "-c", `
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.sendmsg([b"import os; os._exit(9)"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 0]))])
print(s.recv(100))
`, socket)
	client.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	client.Dir = "/"
	out, err := client.CombinedOutput()
	if (err != nil || !bytes.Contains(out, []byte("b''"))) && !bytes.Contains(out, []byte("ConnectionReset")) && !bytes.Contains(out, []byte("Broken")) {
		t.Errorf("%v: %s", err, out)
	}
	if harness.Eval[int](t, run.Remote, "1") != 1 {
		t.Error("the program has obeyed")
	}
}

// TestListenErrors: what listen refuses, and where it makes its socket if the usual place is not fit.
func TestListenErrors(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, os, remote
os.environ["XDG_RUNTIME_DIR"] = os.environ["BAD"]
path = ndbridge.listen("a.b-c")
print(path, flush=True)
def error(f, *a, **k):
    try: return "gave %r" % (f(*a, **k),)
    except Exception as e: return "%s: %s" % (type(e).__name__, e)
remote.serve()
`, harness.RunningOptions{Env: []string{"BAD=/proc"}})
	for code, want := range map[string]string{
		"error(ndbridge.listen, 'a.b-c') == 'gave %r' % path":                  "True",
		"error(ndbridge.listen, 'other')":                                      "RuntimeError: listen: the program listens already, as a.b-c",
		"error(ndbridge.listen, 'a.b-c', '/tmp/elsewhere')":                    "RuntimeError: listen: the program listens already",
		"error(ndbridge.listen, '../x')":                                       "ValueError: listen: the name '../x'",
		"error(ndbridge.listen, 'x' * 65)":                                     "ValueError",
		"error(ndbridge.listen, 5)":                                            "ValueError",
		"error(ndbridge.unpublish, 'nothing')":                                 "KeyError",
		"error(lambda: ndbridge.host.f())":                                     "AttributeError: there is no host",
		"str(os.stat(os.path.dirname(path)).st_mode & 0o777)":                  "448",
		"str(os.stat(path).st_mode & 0o777)":                                   "384",
		"path.endswith('/a.b-c.%d' % os.getpid()) and str(ndbridge.connected)": "False",
	} {
		if got := harness.Eval[any](t, run.Remote, code); !strings.HasPrefix(toText(got), want) {
			t.Errorf("%s: %v, want %s", code, got, want)
		}
	}
}

func toText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
	}
	return "False"
}
