package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pidOf waits until a program of testdata/forever.py runs, and gives its process id.
func pidOf(t *testing.T, name string) int {
	t.Helper()
	var pid int
	poll(t, "the program runs", func() bool {
		text, err := os.ReadFile(name)
		if err == nil {
			pid, err = strconv.Atoi(string(text))
		}
		return err == nil
	})
	return pid
}

// poll waits for what another process does.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// gone reports whether a process has ended, whether or not somebody has asked for its status.
func gone(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(after, []byte("Z")) || bytes.HasPrefix(after, []byte("X"))
}

// TestInterrupt holds that Ctrl-C ends each command and its program, with the status that shells know.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"view": {"view", "--patience", "1h", "frame"},
		"late": {"view", "--json", "--patience", "0", "late"},
		"ls":   {"ls", "--patience", "1h"},
		"run":  {"run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pidFile := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var stdout, stderr bytes.Buffer
			cmd := process(ctx, append(args, "--script", "testdata/forever.py", "--python", python(t), "--", pidFile)...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := pidOf(t, pidFile)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != statusInterrupted {
				t.Errorf("ended with %v", err)
			}
			if !gone(pid) {
				t.Error("the program still runs")
			}
			if name != "late" && stdout.Len() > 0 || strings.Contains(stderr.String(), "ndbridge:") {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}

// TestClosedPipe holds that a reader who has read enough ends the command as it ends others, and the
// program with it.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := process(ctx, "view", "--script", "testdata/forever.py", "--python", python(t), "--patience", "0", "frame", "--", pidFile)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	intoClosedPipe(t, cmd)
	if stderr.Len() > 0 {
		t.Errorf("on stderr: %s", &stderr)
	}
	pid := pidOf(t, pidFile)
	poll(t, "the program ends", func() bool { return gone(pid) })
}

// TestFullDisk holds that results that could not be written are an error.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"view", "small"}, {"view", "--json", "small"}, {"ls"}, {"ls", "--json"}, {"version"}, {"quirks"}, {"doctor"}, {"bench", "--rounds", "1"}} {
		switch args[0] {
		case "view", "ls":
			args = append(args, "--script", "testdata/program.py", "--python", python(t))
		case "bench":
			args = append(args, "--python", python(t))
		}
		var stderr bytes.Buffer
		if status := run(t.Context(), args, full, &stderr); status != statusFailed || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%v: status %d, %s", args, status, &stderr)
		}
	}
	if err := full.Close(); err != nil {
		t.Error(err)
	}
}

// TestTimeout holds that a name that never comes is given up, and that what else was wanted is shown.
func TestTimeout(t *testing.T) {
	t.Parallel()
	r := on(t, "view", "forever.py", "--json", "--patience", "0", "--timeout", "15s", "frame", "late", "--", filepath.Join(t.TempDir(), "pid"))
	r.want(t, statusFailed, `{"name":"frame","framework":"numpy","dtype":"uint8",`, "")
	r.want(t, statusFailed, `{"name":"late","error":{"category":"deadline exceeded","message":"view forever/late: context deadline exceeded: the program still runs and has no array of that name after 15s","remedy":"raise --timeout, or look with 'ndbridge ls' which arrays it has","quirk":""}}`, "")
}

// TestTerminal holds what a terminal gets: colours, unless the user does not want them, and on a wait
// a line that says so, on standard error alone.
func TestTerminal(t *testing.T) {
	t.Parallel()
	view := []string{"view", "--script", "testdata/program.py", "--python", python(t), "frame"}
	const colour, bold = "\x1b[38;2;", "\x1b[1mframe\x1b[0m"
	for name, c := range map[string]struct {
		args, env []string
		colours   bool
	}{
		"true colour": {view, []string{"TERM=xterm", "COLORTERM=truecolor", "NO_COLOR="}, true},
		"NO_COLOR":    {view, []string{"TERM=xterm", "COLORTERM=truecolor", "NO_COLOR=1"}, false},
		"dumb":        {view, []string{"TERM=dumb", "COLORTERM=truecolor", "NO_COLOR="}, false},
		"never":       {append([]string{"--color", "never"}, view...), []string{"TERM=xterm", "COLORTERM=truecolor", "NO_COLOR="}, false},
		"always":      {append([]string{"--color", "always"}, view...), []string{"TERM=xterm", "COLORTERM=truecolor", "NO_COLOR=1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if args[0] != "view" { // flags of a command stand behind it
				args = append([]string{"view"}, append(args[:2:2], args[3:]...)...)
			}
			text := onTerminal(t, c.env, args...)
			if got := strings.Contains(text, colour) && strings.Contains(text, bold); got != c.colours {
				t.Errorf("colours: %v, want %v\n%q", got, c.colours, text)
			}
		})
	}
	t.Run("progress", func(t *testing.T) {
		t.Parallel()
		text := onTerminal(t, []string{"TERM=xterm"}, "view", "--script", "testdata/forever.py", "--python", python(t),
			"--patience", "0", "--timeout", "15s", "late", "--", filepath.Join(t.TempDir(), "pid"))
		if !strings.Contains(text, "\r\x1b[Kwaiting for late, ") || !strings.Contains(text, "\r\x1b[Kndbridge: view forever/late: ") {
			t.Errorf("got %q", text)
		}
	})
}

// TestDoctorIntoClosedPipe holds that it ends in the same way, and leaves nothing behind.
func TestDoctorIntoClosedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := process(ctx, "doctor", "--python", python(t), "numpy")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	intoClosedPipe(t, cmd)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has left %v (%v)", left, err)
	}
}

// intoClosedPipe runs a command whose output nobody reads, and holds that it ends of that.
func intoClosedPipe(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = writer
	err = errors.Join(cmd.Run(), writer.Close())
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("ended with %v", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE {
		t.Errorf("ended with %v", exit)
	}
}

// onTerminal runs the command line on a terminal of 80 columns and gives what it showed.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	ours, theirs := terminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := process(ctx, args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = theirs, theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(ours)
	if err != nil && !errors.Is(err, syscall.EIO) { // a terminal that nobody holds any more
		t.Error(err)
	}
	_ = cmd.Wait() // the cases look at the text
	return string(text)
}
