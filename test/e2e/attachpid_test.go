package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	programs "github.com/ndbridge/ndbridge/internal/running"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// unprepared is a program that knows nothing of hosts, and works.
const unprepared = `
import _thread, numpy as np, sys
x = np.zeros(8 << 20)
_thread.start_new_thread = None  # as gevent replaces it
print("runs", flush=True)
def main():
    step = 0
    while True:
        step += 1
        x[5] = step
main()
`

// pythonOf gives an interpreter of the matrix whose version begins so.
func pythonOf(t *testing.T, version string) string {
	t.Helper()
	for _, python := range harness.Pythons(t) {
		if strings.Contains(python, "/"+version+"-") {
			return python
		}
	}
	t.Fatalf("the matrix has no Python %s", version)
	return ""
}

// TestAttachByPID: a host attaches to a process of Python 3.14 that nobody has prepared, again and again, beside another host, and leaves it
// running; nothing of that stays in the file system.
func TestAttachByPID(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	run := harness.RunAlone(t, unprepared, harness.RunningOptions{Python: pythonOf(t, "3.14"), Heap: true})
	host := harness.NewHost(t)
	var sessions []*hostplugin.Session
	for range 3 {
		s, err := host.Attach(t.Context(), hostplugin.PID(run.PID))
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		view, err := s.View(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		data := slice[float64](t, view)
		before := data[5]
		harness.Eventually(t, harness.StartBound, "the view is live", func() bool { return data[5] > before })
		if view.Copied() {
			t.Errorf("copied: %s", view.Reason())
		}
		if r, err := s.Value(t.Context(), "main().step"); err != nil {
			t.Error(err)
		} else if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(tmp + "/ndbridge-*"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if !run.Alive() || run.Stderr() != "" {
		t.Errorf("the program: %s", run.Stderr())
	}
}

// TestAttachByPIDAtOnce: hosts that ask one process at the same time are let in one after the other.
func TestAttachByPIDAtOnce(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, unprepared, harness.RunningOptions{Python: pythonOf(t, "3.14"), Heap: true})
	host := harness.NewHost(t)
	for range 5 {
		var coming sync.WaitGroup
		for range 8 {
			coming.Go(func() {
				s, err := host.Attach(t.Context(), hostplugin.PID(run.PID))
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		coming.Wait()
	}
	if !run.Alive() || run.Stderr() != "" {
		t.Errorf("the program: %s", run.Stderr())
	}
}

// TestAttachByPIDInsists: a process is asked again if Python could not run the script, as in code that has no builtins.
func TestAttachByPIDInsists(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import threading
bare = eval("lambda: None", {"__builtins__": {}})
print("runs", flush=True)
threading.Timer(0.3, lambda: globals().update(bare=lambda: None)).start()
while True: bare(); bare(); bare(); bare(); bare(); bare(); bare(); bare(); bare()
`, harness.RunningOptions{Python: pythonOf(t, "3.14")})
	s, err := harness.NewHost(t).Attach(t.Context(), hostplugin.PID(run.PID))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAttachByPIDBesideADebugger: what somebody else has asked the process for is not lost when a host asks it for something.
func TestAttachByPIDBesideADebugger(t *testing.T) {
	t.Parallel()
	python := pythonOf(t, "3.14")
	dir := t.TempDir()
	run := harness.RunAlone(t, "import time\nx = 1\nprint('runs', flush=True)\nwhile True: time.sleep(0.2)", harness.RunningOptions{Python: python})
	host := harness.NewHost(t)
	for n := range 5 {
		script, ran := filepath.Join(dir, fmt.Sprint("script", n)), filepath.Join(dir, fmt.Sprint("ran", n))
		if err := os.WriteFile(script, fmt.Appendf(nil, "open(%q, 'w').close()\n", ran), 0o600); err != nil {
			t.Fatal(err)
		}
		ask := exec.CommandContext(t.Context(), python, "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])", strconv.Itoa(run.PID), script)
		if out, err := ask.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s, err := host.Attach(t.Context(), hostplugin.PID(run.PID))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(ran); err != nil {
			t.Errorf("the script of another: %v", err)
		}
	}
}

// TestAttachByPIDLosesNoSignals: nor is anything that the interpreter itself has marked for its main thread, while threads wait for the lock.
func TestAttachByPIDLosesNoSignals(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "count")
	run := harness.RunAlone(t, `
import os, signal, threading, time
fd = os.open(os.environ["COUNT"], os.O_RDWR | os.O_CREAT)
count = 0
def handler(*args):
    global count
    count += 1
    os.pwrite(fd, b"%20d" % count, 0)
signal.signal(signal.SIGUSR1, handler)
def wants():
    while True: time.sleep(0.001)
threading.Thread(target=wants, daemon=True).start()
print("runs", flush=True)
while True: pass
`, harness.RunningOptions{Python: pythonOf(t, "3.14"), Env: []string{"COUNT=" + file}})
	host := harness.NewHost(t)
	for sent := 1; sent <= 100; sent++ {
		var coming sync.WaitGroup
		if sent%10 == 0 {
			coming.Go(func() {
				s, err := host.Attach(t.Context(), hostplugin.PID(run.PID))
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := syscall.Kill(run.PID, syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, harness.StartBound, "the signal is handled", func() bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(sent)
		})
		coming.Wait()
	}
}

// TestAttachByPIDElsewhere: the interpreter's file is found whatever it is called, also where it has been removed since.
func TestAttachByPIDElsewhere(t *testing.T) {
	t.Parallel()
	python := pythonOf(t, "3.14")
	out, err := exec.CommandContext(t.Context(), python, "-c",
		"import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix, sep='\\n')").Output()
	if err != nil {
		t.Fatal(err)
	}
	original, home, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	program, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "my trainer")
	if err := os.WriteFile(copied, program, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	run := harness.RunAlone(t, "import time\nstep = 7\nprint('runs', flush=True)\nwhile True: time.sleep(0.01)",
		harness.RunningOptions{Python: copied, Env: []string{"PYTHONHOME=" + home}})
	host := harness.NewHost(t)
	for range 2 {
		s, err := host.Attach(t.Context(), hostplugin.PID(run.PID))
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Value(t.Context(), "step")
		if err != nil {
			t.Fatal(err)
		}
		var step int
		if err := r.Decode(&step); err != nil || step != 7 {
			t.Errorf("step %d, %v", step, err)
		}
		if err := cmp.Or(r.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		_ = os.Remove(copied) // it runs on without
	}
}

// TestAttachByPIDErrors: which processes cannot be asked, and why.
func TestAttachByPIDErrors(t *testing.T) {
	t.Parallel()
	host := harness.NewHost(t)
	fails := func(what string, pid int, timeout time.Duration, kind error, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		s, err := host.Attach(ctx, hostplugin.PID(pid))
		if s != nil {
			_ = s.Close()
		}
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %v, with %q", what, err, kind, want)
		}
	}
	for _, version := range []string{"3.8", "3.10", "3.11", "3.12", "3.13"} {
		run := harness.RunAlone(t, unprepared, harness.RunningOptions{Python: pythonOf(t, version)})
		fails(version, run.PID, harness.StartBound, core.ErrVersion, "older than 3.14")
		if !run.Alive() {
			t.Errorf("%s has ended: %s", version, run.Stderr())
		}
	}
	off := harness.RunAlone(t, unprepared, harness.RunningOptions{Python: pythonOf(t, "3.14"), Env: []string{"PYTHON_DISABLE_REMOTE_DEBUG=1"}})
	const option = "-X disable-remote-debug"
	fails("switched off", off.PID, harness.StartBound, core.ErrConfig, option)
	if help, err := exec.CommandContext(t.Context(), pythonOf(t, "3.14"), "--help-xoptions").Output(); err != nil || !strings.Contains(string(help), option) {
		t.Errorf("Python does not call its option %s: %v\n%s", option, err, help)
	}
	asleep := harness.RunAlone(t, "print('sleeps', flush=True)\nimport time\ntime.sleep(3)\nprint(1)\ntime.sleep(1000)\n",
		harness.RunningOptions{Python: pythonOf(t, "3.14")})
	time.Sleep(300 * time.Millisecond) // which it says before
	fails("asleep", asleep.PID, 500*time.Millisecond, context.DeadlineExceeded, "its main thread runs no Python code")
	sleeper := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	fails("sleep", sleeper.Process.Pid, harness.StartBound, core.ErrNotFound, "runs no Python")
	if err := syscall.Kill(sleeper.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = sleeper.Wait()
	fails("nobody", sleeper.Process.Pid, harness.StartBound, core.ErrNotFound, "no such process")
	time.Sleep(3 * time.Second) // until the program that slept would have run what was withdrawn
	if !asleep.Alive() || asleep.Stderr() != "" {
		t.Errorf("the program that was asleep: %s", asleep.Stderr())
	}
	started := harness.Start(t, "import remote\nx = 1\nremote.serve()\n", harness.Options{Python: pythonOf(t, "3.14")})
	pid := started.PID(t)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		fails("another host's", pid, harness.StartBound, core.ErrUnavailable, "another host has started the program")
	}()
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		default:
			started.Remote.Exec(t, "x = x + 1") // its main thread runs code
		}
	}
}

// TestAttachByPIDSilentHost: the program's main thread goes on while a host that it was asked to let in says nothing, and what the program's
// handlers of signals raise meanwhile arrives where the program expects it.
func TestAttachByPIDSilentHost(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "steps")
	run := harness.RunAlone(t, `
import os, signal
fd = os.open(os.environ["STEPS"], os.O_RDWR | os.O_CREAT)
class Raised(Exception): pass
def handler(*args): raise Raised
signal.signal(signal.SIGUSR1, handler)
print("runs", flush=True)
steps = raised = 0
while True:
    try:
        steps += 1
        os.pwrite(fd, b"%20d %20d" % (steps, raised), 0)
    except Raised:
        raised += 1
`, harness.RunningOptions{Python: pythonOf(t, "3.14"), Env: []string{"STEPS=" + file}})
	c, err := programs.FindProcess(t.Context(), run.PID, bootstrap.AskCode)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Side.Close()
	read := func() (steps, raised int) {
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = fmt.Sscan(string(text), &steps, &raised)
		}
		if err != nil {
			t.Fatal(err)
		}
		return steps, raised
	}
	before, _ := read()
	if err := syscall.Kill(run.PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 4*time.Second, "the program goes on, and its handler has raised", func() bool { // it would wait 5 s for the host
		steps, raised := read()
		return steps > before+1000 && raised == 1
	})
}
