package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// pids waits for n pids that the program prints on descriptor 2.
func pids(t *testing.T, p *Process, n int) []int {
	t.Helper()
	var out []int
	eventually(t, "pids are printed", func() bool { return len(strings.Fields(p.LastErrors())) == n })
	for f := range strings.FieldsSeq(p.LastErrors()) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

func TestKillEndsTheGroup(t *testing.T) {
	t.Parallel()
	p, _, _ := shell(t, `sleep 600 & echo $! >&2; sh -c 'sleep 601 & echo $! >&2; wait' & echo $$ >&2; wait`, nil)
	begin(t, p)
	group := pids(t, p, 3)
	if pgid, err := syscall.Getpgid(group[0]); err != nil || strconv.Itoa(pgid) != p.ID() {
		t.Errorf("process group %d, %v; want %s", pgid, err, p.ID())
	}
	if p.Dying() {
		t.Error("a running program is dying")
	}
	for range 2 {
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if how, own := exited(t, p); how != "was killed by signal 9 (SIGKILL)" || own {
		t.Errorf("Exit = %q, %v", how, own)
	}
	for _, pid := range group {
		eventually(t, "the group is gone", func() bool { return !alive(pid) })
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestExitEndsTheGroup: what a program leaves behind in its group ends with it, and what it leaves
// elsewhere cannot hold up its end, though it has all the pipes.
func TestExitEndsTheGroup(t *testing.T) {
	t.Parallel()
	p, _, _ := shell(t, `sleep 600 & echo $! >&2; setsid sleep 601 & echo $! >&2; sleep 0.2`, nil)
	begin(t, p)
	left := pids(t, p, 2)
	began := time.Now()
	if how, own := exited(t, p); how != "exited with status 0" || !own {
		t.Errorf("Exit = %q, %v", how, own)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the end took %v", d)
	}
	eventually(t, "the group is gone", func() bool { return !alive(left[0]) })
	if !alive(left[1]) {
		t.Error("a process of another session is gone")
	}
	if err := syscall.Kill(left[1], syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	p, _, _ := shell(t, `kill -ABRT $$`, nil)
	begin(t, p)
	if how, own := exited(t, p); how != "was killed by signal 6 (SIGABRT)" || !own {
		t.Errorf("Exit = %q, %v", how, own)
	}
}

// TestProgramDiesWithItsHost kills a host in the hardest way.
func TestProgramDiesWithItsHost(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.CommandContext(t.Context(), exe)
	host.Env = append(os.Environ(), hostVariable+"=1")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("the program of pid %d does not run: %v", pid, err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(); err == nil {
		t.Error("the host has ended well")
	}
	eventually(t, "the program is gone", func() bool { return !alive(pid) })
}

func TestKillBeforeStart(t *testing.T) {
	t.Parallel()
	p, _, _ := shell(t, `sleep 600`, nil)
	if err := p.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	begin(t, p)
	if how, own := exited(t, p); how != "was killed by signal 9 (SIGKILL)" || own {
		t.Errorf("Exit = %q, %v", how, own)
	}
}

// TestKillDuringFork: a new process that cannot load its file can be killed, before it has a pid here. The
// file does not load because who opens it waits for a lease on it to be given back.
func TestKillDuringFork(t *testing.T) {
	t.Parallel()
	f, err := os.Open(bootstraptest.WriteProgram(t, "program", "#!/bin/sh\nexec sleep 600\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// On a file system that has no leases the file just loads.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Logf("a lease on %s: %v", f.Name(), err)
	}
	p, _, _ := shell(t, "", func(s *Spec) { s.Path = f.Name() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for p.forker.Load() == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	began := time.Now()
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if how, own := exited(t, p); how != "was killed by signal 9 (SIGKILL)" || own {
		t.Errorf("Exit = %q, %v", how, own)
	}
	if d := time.Since(began); d > 20*time.Second { // else the lease has ended by itself, after 45 s
		t.Errorf("the end took %v", d)
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	p, side, _ := shell(t, `sleep 600`, nil)
	p.Discard()
	p.Discard()
	if how, own := exited(t, p); how != "was not started" || own {
		t.Errorf("Exit = %q, %v", how, own)
	}
	if err := p.Start(t.Context()); err == nil {
		t.Error("Start after Discard succeeds")
	}
	if _, _, err := side.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("side socket: %v", err)
	}
}

// TestStuckWriter: a writer of the host's own that blocks cannot hold up the end of a program, nor keep its
// last words.
func TestStuckWriter(t *testing.T) {
	t.Parallel()
	side, peer, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe() // nobody reads
	p := New(&Spec{Path: "/bin/sh", Args: []string{"sh", "-c", "echo a; echo b; echo c; echo farewell >&2"}}, peer,
		Options{Log: slog.New(slog.DiscardHandler), Stdout: w, Stderr: w})
	begin(t, p)
	if how, _ := exited(t, p); how != "exited with status 0" {
		t.Errorf("Exit = %q", how)
	}
	if got := p.LastErrors(); got != "farewell" {
		t.Errorf("last words: %q", got)
	}
	p.CloseLog()
	if err := errors.Join(r.Close(), w.Close(), side.Close()); err != nil {
		t.Error(err)
	}
}

func TestExiting(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]bool{
		"1 (a) R 0 1 1 0 -1 4194304 0":        false,
		"1 (a) Z 0 1 1 0 -1 4194308 0":        true,
		"1 (a ) R 0 4) S 0 1 1 0 -1 4 0":      true,
		"1 (a) 4 4 4 4 4 4) R 0 1 1 0 -1 8 0": false,
		"1 (a) R":                             false,
		"":                                    false,
		"1 (a) R 0 1 1 0 -1 flags 0":          false,
	} {
		if got := exiting(stat); got != want {
			t.Errorf("exiting(%q) = %v", stat, got)
		}
	}
}
