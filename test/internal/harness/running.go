package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// Running is a Python program that no host has started. It runs until the test ends.
type Running struct {
	PID    int
	Remote *Remote // steers it, if the script uses remote.py
	Socket string  // where it listens, if the script prints that first

	cmd    *exec.Cmd
	exited chan struct{}
	mu     sync.Mutex
	stderr bytes.Buffer
}

// RunningOptions say how to run a program; the zero value runs the script in the base environment.
type RunningOptions struct {
	Python string
	Below  []string // the command that runs the interpreter, if the test does not
	Heap   bool     // with the shared heap preloaded
	Env    []string // on top of the test's own
	Silent bool     // it prints no socket
}

// RunAlone runs a script that may import the module ndbridge, and that prints first what ndbridge.listen returns.
func RunAlone(tb testing.TB, script string, opts RunningOptions) *Running {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "alone.py")
	for name, text := range map[string]string{"alone.py": script, "remote.py": remoteScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	r := &Running{Remote: NewRemote(tb), exited: make(chan struct{})}
	command := append(slices.Clone(opts.Below), cmp.Or(opts.Python, Python(tb)), file)
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the test's end kills it
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		tb.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "REMOTE_SOCKET="+r.Remote.socket, "PYTHONPATH="+Library(tb, "python"), "XDG_RUNTIME_DIR="+run)
	if opts.Heap {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+Library(tb, "libndbridge-heap.so"))
	}
	cmd.Env = append(cmd.Env, opts.Env...)
	cmd.Stderr = writer(func(p []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stderr.Write(p)
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	r.cmd, r.PID = cmd, cmd.Process.Pid
	tb.Cleanup(func() {
		_ = syscall.Kill(-r.PID, syscall.SIGKILL)
		<-r.exited
		if tb.Failed() {
			tb.Logf("the program's standard error:\n%s", r.Stderr())
		}
	})
	lines := bufio.NewReader(stdout)
	if !opts.Silent {
		line, err := lines.ReadString('\n')
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			close(r.exited)
			tb.Fatalf("the program does not listen: %v\n%s", err, r.Stderr())
		}
		r.Socket = strings.TrimSpace(line)
	}
	go func() {
		_, _ = lines.WriteTo(writer(func([]byte) {})) // a pipe that nobody reads would stop it
		_ = cmd.Wait()
		close(r.exited)
	}()
	return r
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// Stderr gives what came so far on its standard error.
func (r *Running) Stderr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String()
}

// Wait waits for the end of the program, and gives its state.
func (r *Running) Wait() *os.ProcessState {
	<-r.exited
	return r.cmd.ProcessState
}

// Alive reports whether the program goes on.
func (r *Running) Alive() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// NewHost makes a host without programs, which is closed when the test ends.
func NewHost(tb testing.TB) *hostplugin.Host {
	tb.Helper()
	host, err := hostplugin.New(hostplugin.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := host.Close(); err != nil {
			tb.Errorf("host.Close: %v", err)
		}
	})
	return host
}

// Attach attaches to the program.
func (r *Running) Attach(tb testing.TB, host *hostplugin.Host) *Run {
	tb.Helper()
	session, err := host.Attach(tb.Context(), hostplugin.Socket(r.Socket))
	if err != nil {
		tb.Fatal(err)
	}
	return &Run{Session: session, Remote: r.Remote, Host: host, Log: NewLog()}
}
