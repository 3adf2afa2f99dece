package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachByPIDAtTheStart: a host that comes while the interpreter starts, becomes another program or ends waits, or learns what is so. The
// program does not notice.
func TestAttachByPIDAtTheStart(t *testing.T) {
	t.Parallel()
	python := pythonOf(t, "3.14")
	dir := t.TempDir()
	runs := filepath.Join(dir, "a b.py")
	if err := os.WriteFile(runs, []byte("import time\nx = 7\nwhile True: time.sleep(0.01)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const noPython = "the process runs no Python"
	gone := []string{"there is no such process", "the program has ended", "the program is ending", "the interpreter is ending", "did not let the host in: it has ended"}
	host := harness.NewHost(t)
	for name, c := range map[string]struct {
		command []string
		ends    bool     // whether the program may be gone
		errors  []string // that there may be
	}{
		"starts":          {command: []string{python, runs}},
		"is started late": {command: []string{"sh", "-c", `sleep 0.0$1; exec "$2" "$3"`, "sh", "RANDOM", python, runs}, errors: []string{noPython}},
		"becomes another": {command: []string{python, "-c", "import os, sys, time; time.sleep(float('0.0' + sys.argv[1])); os.execv(*sys.argv[2:3], sys.argv[2:])", "RANDOM", python, runs}, errors: []string{"runs another program (exec)", "did not let the host in: it has ended"}},
		"ends at once":    {command: []string{python, "-c", "pass"}, ends: true, errors: gone},
		"ends soon":       {command: []string{python, "-c", "import sys, time; time.sleep(float('0.0' + sys.argv[1]))", "RANDOM"}, ends: true, errors: gone},
		"is no Python":    {command: []string{"sleep", "1000"}, errors: []string{noPython}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails := func(err error) {
				if !slices.ContainsFunc(c.errors, func(text string) bool { return strings.Contains(err.Error(), text) }) {
					t.Error(err)
				}
			}
			for range 20 {
				var said bootstraptest.Buffer
				args := append([]string{}, c.command...)
				for i, a := range args {
					if a == "RANDOM" {
						args[i] = string('0' + byte(rand.IntN(7)))
					}
				}
				cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // killed below
				cmd.Stdout, cmd.Stderr = &said, &said
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
				began := time.Now()
				s, err := host.Attach(ctx, hostplugin.PID(cmd.Process.Pid))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("took %s", took)
				}
				if s != nil {
					if v, err := s.Value(ctx, "x"); err == nil {
						_ = v.Close()
					} else {
						fails(err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				} else {
					fails(err)
				}
				cancel()
				if !c.ends && !harness.Alive(cmd.Process.Pid) {
					t.Error("the program has ended")
				}
				if !c.ends {
					_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				}
				if err := cmd.Wait(); c.ends && err != nil {
					t.Error(err)
				}
				if strings.TrimSpace(said.String()) != "" {
					t.Errorf("the program says %s", said.String())
				}
			}
		})
	}
}

// TestAttachByPIDStopped: nor does a host hang whose program is stopped while it starts, and it can come when that goes on.
func TestAttachByPIDStopped(t *testing.T) {
	t.Parallel()
	python := pythonOf(t, "3.14")
	host := harness.NewHost(t)
	for range 10 {
		cmd := exec.Command(python, "-c", "import time\nwhile True: time.sleep(0.01)") //nolint:noctx // killed below
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := host.Attach(ctx, hostplugin.PID(cmd.Process.Pid)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if s, err := host.Attach(t.Context(), hostplugin.PID(cmd.Process.Pid)); err != nil {
			t.Error(err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
	}
}

// TestAttachByPIDBeforeItListens: a program below "ndbridge run --share" listens soon after its start, for which a host waits. Before that it
// is no Python, and never no process.
func TestAttachByPIDBeforeItListens(t *testing.T) {
	host := harness.NewHost(t)
	for range 10 {
		s := share(t, nil, harness.Python(t), "-c", "import time; time.sleep(1000)")
		s.start(t)
		harness.Eventually(t, harness.StartBound, "a host is let in", func() bool {
			session, err := host.Attach(t.Context(), hostplugin.PID(s.Process.Pid))
			if err == nil {
				err = session.Close()
			} else if strings.Contains(err.Error(), "the process runs no Python") {
				return false
			}
			if err != nil {
				t.Error(err)
			}
			return true
		})
	}
}
