package bootstrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// grace is how long a program has to end by itself; the margin is for a busy machine.
const (
	grace  = time.Second
	margin = 10 * time.Second
)

func TestHostEndsRunningProgram(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lines  []string
		stdout string // besides "up"
	}{
		"asleep": {[]string{
			"import atexit, time",
			"atexit.register(print, 'atexit')",
			"try:", "    print('up'); time.sleep(60)", "finally:", "    print('finally')",
		}, "finally\natexit\n"},
		"busy":         {[]string{"print('up')", "while True: pass"}, ""},
		"exits itself": {[]string{"import sys, time", "try:", "    print('up'); time.sleep(60)", "except KeyboardInterrupt:", "    sys.exit()"}, ""},
		"in a thread": {[]string{
			"import threading, time",
			"done = threading.Event()",
			"threading.Thread(target=lambda: (done.wait(), print('thread'))).start()",
			"try:", "    print('up'); time.sleep(60)", "finally:", "    done.set()",
		}, "thread\n"},
		"joins a thread": {[]string{
			"import threading, time",
			"threading.Thread(target=time.sleep, args=(.2,)).start()",
			"print('up')",
		}, ""},
		"asyncio": {[]string{
			"import asyncio",
			// In main, the interrupt could come between the call of sleep and await, of which Python warns.
			"async def main():", "    asyncio.get_running_loop().call_soon(print, 'up')", "    await asyncio.sleep(60)",
			"asyncio.run(main())",
		}, ""},
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				proc := start(t, bootstraptest.Program{Python: python, Target: script(t, tt.lines...)})
				proc.Await(t, "up\n")
				proc.End(t)
				state := proc.Wait(t)
				if state.ExitCode() != 0 || proc.Stdout() != "up\n"+tt.stdout || proc.Stderr() != "" {
					t.Errorf("%v\nstdout: %s\nstderr: %s", state, proc.Stdout(), proc.Stderr())
				}
			})
		}
	})
}

// TestPluginEndsProgramWithoutProc: the plugin ends a program that has left /proc behind as it ends any other.
func TestPluginEndsProgramWithoutProc(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := start(t, bootstraptest.Program{Python: bootstraptest.MayChroot(t, python), Target: script(t,
			"import ctypes, os, time",
			fmt.Sprintf("plugin = ctypes.CDLL(%q)", standin),
			fmt.Sprintf("os.chroot(%q)", t.TempDir()),
			"try:", "    plugin.nd_end(); time.sleep(60)", "finally:", "    print('finally')",
		)})
		state := proc.Wait(t)
		if state.ExitCode() != 0 || proc.Stdout() != "finally\n" || proc.Stderr() != "" {
			t.Errorf("%v\nstdout: %s\nstderr: %s", state, proc.Stdout(), proc.Stderr())
		}
	})
}

func TestHostKillsProgramThatGoesOn(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"ignores": {"import signal", "signal.signal(signal.SIGINT, signal.SIG_IGN)", "work()"},
		"catches": {"while True:", "    try: work()", "    except BaseException: pass"},
		"blocks":  {"import signal", "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])", "work()"},
		"threads": {
			"import threading", "threading.Thread(target=work).start()",
			// Interrupting a join would make some Pythons forget the thread.
			"try: time.sleep(60)", "except KeyboardInterrupt: pass",
		},
		"atexit": {"import atexit", "atexit.register(work)"},
		"holds the lock": {
			"import ctypes, signal",
			"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])", // or it would end before it has the lock
			"print(child.pid); print('up')",
			"mutex = ctypes.create_string_buffer(64)",
			"for _ in range(2): ctypes.PyDLL(None).pthread_mutex_lock(mutex)", // unlike a sleep, goes on after a signal
		},
	}
	each(t, func(t *testing.T, python string) {
		for name, lines := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lines = append([]string{
					"import subprocess, time",
					"child = subprocess.Popen(['sleep', '60'])",
					"def work():",
					"    print(child.pid); print('up')",
					"    while True: time.sleep(60)",
				}, lines...)
				proc := start(t, bootstraptest.Program{Python: python, Env: []string{bootstraptest.StopTimeout(grace)}, Target: script(t, lines...)})
				begin := time.Now()
				if name == "atexit" { // whose work begins with the end
					proc.Next(t, "finished")
					proc.End(t)
				}
				proc.Await(t, "up\n")
				if name != "atexit" {
					begin = time.Now()
					proc.End(t)
				}
				status, _ := proc.Wait(t).Sys().(syscall.WaitStatus)
				took := time.Since(begin)
				if !status.Signaled() || status.Signal() != syscall.SIGKILL || took < grace || took > grace+margin {
					t.Errorf("%v after %v; want to be killed after %v\nstderr: %s", status, took, grace, proc.Stderr())
				}
				child, err := strconv.Atoi(strings.Fields(proc.Stdout())[0])
				if err != nil {
					t.Fatal(err)
				}
				gone(t, child)
			})
		}
	})
}

// A program that ends in order, even one that takes no time for it, takes its children along: there
// may be no host any more that could.
func TestChildrenEndWithTheirProgram(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line   string
		status int
	}{
		"in order": {"sys.exit(5)", 5},
		"at once":  {"os._exit(6)", 6},
		"waits":    {"sys.exit(7 if os.waitpid(-1, os.WNOHANG) == (0, 0) else 1)", 7}, // for its own only
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				proc := start(t, bootstraptest.Program{Python: python, Target: script(t,
					"import os, signal, subprocess, sys, time",
					"ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)",
					"child = subprocess.Popen(['sleep', '60'], preexec_fn=ignore)",
					"try:", "    print(child.pid); print('up'); time.sleep(60)",
					"except KeyboardInterrupt:", "    "+tt.line,
				)})
				proc.Await(t, "up\n")
				proc.End(t)
				if state := proc.Wait(t); state.ExitCode() != tt.status {
					t.Errorf("%v, want status %d\nstderr: %s", state, tt.status, proc.Stderr())
				}
				child, err := strconv.Atoi(strings.Fields(proc.Stdout())[0])
				if err != nil {
					t.Fatal(err)
				}
				gone(t, child)
			})
		}
	})
}

// gone waits until a process that is not a child of this one has died.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(bootstraptest.Patience); ; time.Sleep(2 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is still there: %s", pid, stat)
		}
	}
}

// A background job of a shell without job control ignores SIGINT, and what it starts inherits that.
func TestInterruptReachesProgramOfBackgroundJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		wrapper := bootstraptest.WriteProgram(t, "python", "#!/bin/sh\ntrap '' INT\nexec "+python+` "$@"`+"\n")
		proc := start(t, bootstraptest.Program{Python: wrapper, Target: script(t,
			"import time", "try:", "    print('up'); time.sleep(60)", "finally:", "    print('finally')",
		)})
		proc.Await(t, "up\n")
		proc.End(t)
		if state := proc.Wait(t); state.ExitCode() != 0 || proc.Stdout() != "up\nfinally\n" {
			t.Errorf("%v\nstdout: %s\nstderr: %s", state, proc.Stdout(), proc.Stderr())
		}
	})
}

func TestProgramStaysWhenItHasEnded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := start(t, bootstraptest.Program{
			Python: python, Env: []string{"STANDIN_SAYS_CLOSE=1"},
			Target: script(t,
				"import atexit, os, signal, sys",
				"atexit.register(lambda: print('atexit', file=sys.stderr))",
				"signal.signal(signal.SIGUSR1, lambda *a: os.write(1, b'signal\\n'))", // a print may still be under way
				"print('no newline', end='')",
			),
		})
		proc.Next(t, "finished")
		proc.Await(t, "no newline") // written out, though the process stays
		for range 2 {
			if err := syscall.Kill(proc.PID, syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			proc.Await(t, "signal\n")
		}
		if proc.Exited() || proc.Stderr() != "" {
			t.Errorf("the process did not stay: %s", proc.Stderr())
		}
		proc.End(t)
		if state := proc.Wait(t); state.ExitCode() != 0 || proc.Stderr() != "closed\natexit\n" {
			t.Errorf("%v\nstderr: %q", state, proc.Stderr())
		}
	})
}

// A script's threads belong to it, as they do when Python alone runs it.
func TestScriptEndsWithItsThreads(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		flag := filepath.Join(t.TempDir(), "go on")
		proc := start(t, bootstraptest.Program{Python: python, Args: []string{flag}, Target: script(t,
			"import os, sys, threading, time",
			"def work():",
			"    print('up')",
			"    while not os.path.exists(sys.argv[1]): time.sleep(.005)",
			"    threading.Thread(target=print, args=('second',)).start()",
			"threading.Thread(target=work).start()",
			"threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
		)})
		proc.Await(t, "up\n")
		select {
		case m := <-proc.Messages:
			t.Fatalf("%v while a thread runs", m)
		case <-time.After(50 * time.Millisecond):
		}
		if err := os.WriteFile(flag, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		proc.Next(t, "finished")
		proc.Await(t, "second\n")
	})
}

func TestProgramThatFailedLeavesByItself(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line, stage string
		status      int
	}{
		"raises": {"1/0", "failed", 1},
		"exits":  {"raise SystemExit(7)", "finished", 7},
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				proc := start(t, bootstraptest.Program{Python: python, Target: script(t, tt.line)})
				proc.Next(t, tt.stage)
				if state := proc.Wait(t); state.ExitCode() != tt.status { // though the host says nothing
					t.Errorf("%v", state)
				}
			})
		}
	})
}

// An interrupt that does not come from the host means what it means to Python alone.
func TestInterruptFromElsewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		t.Run("running", func(t *testing.T) {
			t.Parallel()
			proc := start(t, bootstraptest.Program{Python: python, Target: script(t,
				"import time", "print('up')",
				"while True: time.sleep(.01)", // one sleep would miss an interrupt that comes just before it
			)})
			proc.Await(t, "up\n")
			interrupt(t, proc)
			proc.Next(t, "failed")
			state := proc.Wait(t)
			if !interrupted(state) || !strings.HasSuffix(proc.Stderr(), "\nKeyboardInterrupt\n") ||
				strings.Contains(proc.Stderr(), "<ndbridge>") {
				t.Errorf("%v\nstderr: %s", state, proc.Stderr())
			}
		})
		t.Run("waiting", func(t *testing.T) {
			t.Parallel()
			proc := start(t, bootstraptest.Program{Python: python, Target: script(t, "print('up')")})
			proc.Next(t, "finished")
			interrupt(t, proc)
			if state := proc.Wait(t); !interrupted(state) || proc.Stderr() != "" {
				t.Errorf("%v\nstderr: %s", state, proc.Stderr())
			}
		})
	})
}

// The interpreter must be closed to the plugin before it ends, and the program's status stays what it is.
func TestInterruptWhileTheInterpreterIsClosed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		got, _ := hosted(t, bootstraptest.Program{
			Python: python, Env: []string{"STANDIN_INTERRUPTS_CLOSE=1", "STANDIN_SAYS_CLOSE=1"},
			Target: script(t, "raise SystemExit(3)"),
		})
		if got.status != 3 || strings.ReplaceAll(got.stderr, "closed\n", "") != "" {
			t.Errorf("%+v", got)
		}
	})
}

// interrupted reports whether a process has ended as Python does after an interrupt that nobody handled.
func interrupted(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}

func interrupt(t *testing.T, proc *bootstraptest.Process) {
	t.Helper()
	if err := syscall.Kill(proc.PID, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

func TestHostEndsBeforeItOpens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		proc := start(t, bootstraptest.Program{
			Python: python, Env: []string{"STANDIN_NEVER_OPENS=1"}, Target: script(t, "print('ran')"),
		})
		proc.End(t)
		if state := proc.Wait(t); state.ExitCode() != 1 || proc.Stdout()+proc.Stderr() != "" {
			t.Errorf("%v\nstdout: %s\nstderr: %s", state, proc.Stdout(), proc.Stderr())
		}
	})
}
