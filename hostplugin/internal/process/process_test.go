package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// hostVariable makes the test binary a host that starts a program, says its pid, and waits.
const hostVariable = "NDTEST_HOST"

func TestMain(m *testing.M) {
	if os.Getenv(hostVariable) != "" {
		if err := hostMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func hostMain() error {
	_, side, err := fdpass.Pair()
	if err != nil {
		return err
	}
	p := New(&Spec{Path: "/bin/sleep", Args: []string{"sleep", "600"}}, side, Options{Log: slog.Default()})
	if err := p.Start(context.Background()); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, p.ID()); err != nil {
		return err
	}
	select {}
}

// shell makes a process that runs a script of sh, and the host's end of its side socket.
func shell(t *testing.T, script string, change func(*Spec)) (p *Process, side *fdpass.Conn, out *bootstraptest.Buffer) {
	t.Helper()
	side, peer, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	spec := &Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()}
	if change != nil {
		change(spec)
	}
	out = new(bootstraptest.Buffer)
	p = New(spec, peer, Options{Log: slog.New(slog.DiscardHandler), Stdout: out})
	t.Cleanup(func() {
		if err := errors.Join(p.Kill(context.WithoutCancel(t.Context())), side.Close()); err != nil {
			t.Error(err)
		}
		p.Discard()
		<-p.Exited()
		p.CloseLog()
	})
	return p, side, out
}

func begin(t *testing.T, p *Process) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func exited(t *testing.T, p *Process) (how string, own bool) {
	t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(20 * time.Second):
		t.Fatal("the program has not ended")
	}
	return p.Exit()
}

func TestOutputAndExit(t *testing.T) {
	t.Parallel()
	p, side, out := shell(t, `echo hand; echo out; echo more >&4; echo bad >&2; echo worse >&2; exit 3`,
		func(s *Spec) { s.OutputFD = true })
	begin(t, p)
	if how, own := exited(t, p); how != "exited with status 3" || !own {
		t.Errorf("Exit = %q, %v", how, own)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("Wait = %v", err)
	}
	<-p.Greeted()
	if p.Greeting() != "hand" {
		t.Errorf("Greeting = %q", p.Greeting())
	}
	if s := out.String(); !strings.Contains(s, "out\n") || !strings.Contains(s, "more\n") || strings.Contains(s, "hand") {
		t.Errorf("output = %q", s)
	}
	if p.LastErrors() != "bad\nworse" {
		t.Errorf("LastErrors = %q", p.LastErrors())
	}
	if _, _, err := side.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("side socket: %v", err)
	}
	if !p.Dying() {
		t.Error("a program that has ended is not dying")
	}
}

// TestGreetingComesAtOnce: it need not be awaited that the program ends, nor is it there before.
func TestGreetingComesAtOnce(t *testing.T) {
	t.Parallel()
	p, _, _ := shell(t, `printf ha; echo nd; exec sleep 600`, nil)
	if p.Greeting() != "" {
		t.Errorf("Greeting = %q before the start", p.Greeting())
	}
	begin(t, p)
	select {
	case <-p.Greeted():
	case <-p.Exited():
	}
	if p.Greeting() != "hand" {
		t.Errorf("Greeting = %q", p.Greeting())
	}
}

// TestDescriptors: a program has what the process model says, and nothing else of its host's.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	preload := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(preload, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	secret, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	readlink, err := exec.LookPath("readlink")
	if err != nil {
		t.Fatal(err)
	}
	p, _, out := shell(t, "", func(s *Spec) {
		s.OutputFD, s.Preload = true, preload
		s.Path, s.Args = readlink, []string{"readlink"}
		for fd := range 1000 {
			s.Args = append(s.Args, fmt.Sprintf("/proc/self/fd/%d", fd))
		}
	})
	begin(t, p)
	exited(t, p)
	got := strings.Fields(p.Greeting() + "\n" + out.String())
	want := []string{"/dev/null", "pipe:", "pipe:", "socket:", "pipe:", preload}
	// What this process itself was started with and has no close-on-exec flag comes after these.
	if len(got) < len(want) || !slices.EqualFunc(got[:len(want)], want, strings.HasPrefix) {
		t.Errorf("descriptors %q, want %q", got, want)
	}
	if slices.Contains(got, secret.Name()) {
		t.Error("the program has a file of its host's")
	}
}

func TestEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _, _ := shell(t, `echo "$PWD $OURS" >&2`, func(s *Spec) { s.Dir, s.Env = dir, []string{"OURS=1"} })
	begin(t, p)
	exited(t, p)
	if want := dir + " 1"; p.LastErrors() != want {
		t.Errorf("the program has %q, want %q", p.LastErrors(), want)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"no file":      func(s *Spec) { s.Path = "/nowhere" },
		"no directory": func(s *Spec) { s.Dir = "/nowhere" },
		"no library":   func(s *Spec) { s.OutputFD, s.Preload = true, "/nowhere" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, side, _ := shell(t, `exit 0`, change)
			if err := p.Start(t.Context()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Start = %v", err)
			}
			if _, own := exited(t, p); own || p.ID() != "" {
				t.Errorf("it has run, as %q", p.ID())
			}
			if _, _, err := side.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("side socket: %v", err)
			}
		})
	}
}
