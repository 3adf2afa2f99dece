//go:build linux

// Package bootstraptest starts Python programs as a host does, without a host: for tests of what runs
// in the program's process.
package bootstraptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// Patience is how long a test waits for what must come. It is generous: only failures take so long.
const Patience = 30 * time.Second

// Program says what to run.
type Program struct {
	Python string
	Plugin string
	Kind   bootstrap.Kind // Script if empty
	Target string
	Args   []string
	Env    []string // besides this process's own
	Dir    string
}

// StopTimeout is the variable of the environment that says how long the program may take to end. It is Patience if
// Program.Env does not have it.
func StopTimeout(d time.Duration) string {
	return fmt.Sprintf("NDBRIDGE_STOP_TIMEOUT_MS=%d", d.Milliseconds())
}

// Process is a Python program that was started as a host starts one. The test is its host: reading
// Messages and calling End is all it has to do.
type Process struct {
	PID       int
	Handshake *os.File

	// Message gives the next datagram of the side socket that is not a descriptor's; it is closed at
	// the socket's end.
	Messages <-chan Message

	side   *fdpass.Conn
	cmd    *exec.Cmd
	stdout Buffer
	stderr Buffer
	exited chan struct{} // closed when cmd.Wait has returned
	silent chan struct{} // closed when nobody has the standard output any more
}

// Message is one JSON object from the side socket.
type Message map[string]any

// Text gives a member that is a string, or "".
func (m Message) Text(key string) string {
	s, _ := m[key].(string)
	return s
}

// Start starts a program. It is killed, with its whole process group, when the test ends.
func Start(tb testing.TB, p Program) *Process {
	tb.Helper()
	if p.Kind == "" {
		p.Kind = bootstrap.Script
	}
	side, sideFile, err := fdpass.Pair()
	check(tb, err)
	check(tb, side.Send(bootstrap.Code()))
	handshake, handshakeFile, err := os.Pipe()
	check(tb, err)
	stdout, stdoutFile, err := os.Pipe()
	check(tb, err)

	proc := &Process{side: side, Handshake: handshake, exited: make(chan struct{}), silent: make(chan struct{})}
	//nolint:noctx // the test's end kills it
	cmd := exec.Command(p.Python, bootstrap.Args(p.Plugin, p.Kind, p.Target, p.Args...)...)
	cmd.Dir = p.Dir
	cmd.Env = slices.Concat(os.Environ(), []string{StopTimeout(Patience)}, p.Env)
	cmd.Stdout = handshakeFile
	cmd.Stderr = &proc.stderr
	cmd.ExtraFiles = []*os.File{sideFile, stdoutFile}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = Patience // a child of the program may hold its standard error open
	check(tb, cmd.Start())
	for _, f := range []*os.File{sideFile, handshakeFile, stdoutFile} {
		check(tb, f.Close())
	}
	proc.cmd, proc.PID = cmd, cmd.Process.Pid

	messages := make(chan Message, 1024)
	proc.Messages = messages
	var readers sync.WaitGroup
	readers.Go(func() { readMessages(side, messages) })
	readers.Go(func() {
		defer close(proc.silent)
		_, _ = io.Copy(&proc.stdout, stdout) // ends when everybody who has it is gone
		_ = stdout.Close()
	})
	go func() {
		_ = cmd.Wait() // the test asks for the state
		close(proc.exited)
	}()
	tb.Cleanup(func() {
		_ = syscall.Kill(-proc.PID, syscall.SIGKILL)
		_ = side.Close()
		_ = handshake.Close()
		<-proc.exited
		_ = stdout.SetReadDeadline(time.Now().Add(time.Second)) // a child may have left the group
		readers.Wait()
	})
	return proc
}

func readMessages(side *fdpass.Conn, to chan<- Message) {
	defer close(to)
	for {
		msg, files, err := side.Recv()
		for _, f := range files {
			_ = f.Close()
		}
		if err != nil {
			return
		}
		var m Message
		if json.Unmarshal(msg, &m) != nil {
			continue // a descriptor's
		}
		select {
		case to <- m:
		default: // nobody wants so many
		}
	}
}

// Next waits for the next message, which must be of this stage.
func (p *Process) Next(tb testing.TB, stage string) Message {
	tb.Helper()
	select {
	case m, ok := <-p.Messages:
		if !ok {
			tb.Fatalf("the side socket ended; want stage %q\nstderr: %s", stage, p.Stderr())
		}
		if m.Text("stage") != stage {
			tb.Fatalf("message %v, want stage %q\nstderr: %s", m, stage, p.Stderr())
		}
		return m
	case <-time.After(Patience):
		tb.Fatalf("no message, want stage %q\nstderr: %s", stage, p.Stderr())
	}
	return nil
}

// End ends the session as a host does that goes away.
func (p *Process) End(tb testing.TB) {
	tb.Helper()
	check(tb, p.side.Close())
}

// Wait waits for the process to end, and for its output, and gives its state.
func (p *Process) Wait(tb testing.TB) *os.ProcessState {
	tb.Helper()
	timeout := time.After(Patience)
	for _, end := range []chan struct{}{p.exited, p.silent} {
		select {
		case <-end:
		case <-timeout:
			tb.Fatalf("the process does not end\nstdout: %s\nstderr: %s", p.Stdout(), p.Stderr())
		}
	}
	return p.cmd.ProcessState
}

// Exited reports whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Stdout gives what came so far on the program's standard output.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr gives what came so far on its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Await waits until the program's standard output holds a text.
func (p *Process) Await(tb testing.TB, text string) {
	tb.Helper()
	timeout := time.After(Patience)
	for {
		got, changed := p.stdout.watch()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			tb.Fatalf("no %q\nstdout: %s\nstderr: %s", text, got, p.Stderr())
		}
	}
}

// RunWithLibrary is the body of a TestMain whose tests load a shared library into an interpreter: it builds the package
// in the folder pytests, tells the tests where the library is, runs them, and gives the exit status.
func RunWithLibrary(m *testing.M, library *string) int {
	dir, err := os.MkdirTemp("", "pytests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's folder for what is temporary
	*library = filepath.Join(dir, "pytests.so")
	// As make builds the plugin, so that most is compiled already.
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildmode=c-shared", "-o", *library, "./pytests")
	out, err := build.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

// Interpreters gives the interpreters to test with, one of each version, by version:
// $NDBRIDGE_TEST_PYTHON and those of $NDBRIDGE_TEST_PYTHONS, which is a list like PATH.
func Interpreters(tb testing.TB) map[string]string {
	tb.Helper()
	first := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if first == "" {
		tb.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	all := make(map[string]string)
	for _, python := range append([]string{first}, strings.FieldsFunc(os.Getenv("NDBRIDGE_TEST_PYTHONS"), isColon)...) {
		const code = "import sys; print('%d.%d' % sys.version_info[:2])"
		out, err := exec.CommandContext(tb.Context(), python, "-c", code).Output()
		if err != nil {
			tb.Fatalf("%s: %v", python, err)
		}
		version := strings.TrimSpace(string(out))
		if all[version] == "" {
			all[version] = python
		}
	}
	return all
}

func isColon(r rune) bool { return r == ':' }

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		tb.Fatal(err)
	}
}

// Buffer keeps what is written to it, by several goroutines. The zero value is empty.
type Buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{} // closed by the next Write
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.b.Write(p)
}

// String gives what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// watch gives what was written so far, and a channel that is closed when there is more.
func (b *Buffer) watch() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.b.String(), b.changed
}
