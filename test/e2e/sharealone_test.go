package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	programs "github.com/ndbridge/ndbridge/internal/running"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// unsharing goes where a process may go only if it has one thread, and says how that went.
const unsharing = `
import ctypes, os, sys, time
run = os.environ["XDG_RUNTIME_DIR"] + "/ndbridge"
while os.environ.get("NDBRIDGE_HEAP_LISTEN") and sys.argv[1] == "late" and not os.listdir(run):
    time.sleep(0.001)
libc = ctypes.CDLL(None, use_errno=True)
for name, flags in ("mnt", 0x20000), ("user", 0x10000000):
    ns = os.open("/proc/self/ns/" + name, os.O_RDONLY)
    for call in (lambda: libc.setns(ns, flags)), (lambda: libc.unshare(flags)):
        ctypes.set_errno(0)
        print(name, call(), ctypes.get_errno(), flush=True)
x = memoryview(b"x")
sys.stdin.read()
`

// TestShareUnshares: a program that listens may go into other namespaces as without ndbridge, before its socket is there and after, and
// hosts come to it all the same.
func TestShareUnshares(t *testing.T) {
	host := harness.NewHost(t)
	for _, when := range []string{"at once", "late"} {
		s := share(t, []string{"--name", "apart"}, harness.Python(t), "-c", unsharing, when)
		alone := exec.CommandContext(t.Context(), harness.Python(t), "-c", unsharing, when)
		alone.Env = s.Env
		want, err := alone.Output()
		if err != nil {
			t.Fatal(err)
		}
		s.start(t)
		harness.Eventually(t, harness.StartBound, "it has gone", func() bool { return strings.Count(s.stdout.String(), "\n") == 4 })
		if got := s.stdout.String(); got != string(want) {
			t.Errorf("%s:\n%s\nwithout ndbridge\n%s", when, got, want)
		}
		session := s.attach(t, host, hostplugin.Name("apart"))
		if _, err := session.View(t.Context(), "x"); err != nil {
			t.Error(err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if status := s.end(t); status != 0 || s.stderr.String() != "" {
			t.Errorf("%s: status %d, %s", when, status, s.stderr.String())
		}
	}
}

// TestSilentPeers: a host is let in while others who have come say nothing, and are still there.
func TestSilentPeers(t *testing.T) {
	t.Parallel()
	for _, heap := range []bool{true, false} {
		run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: heap})
		host := harness.NewHost(t)
		harness.Eventually(t, harness.StartBound, "a host is let in beside silent ones", func() bool { // a slow machine may send these away first
			var silent []*fdpass.Conn
			for range 8 {
				side, _, err := fdpass.Dial(t.Context(), run.Socket)
				if err != nil {
					t.Fatal(err)
				}
				silent = append(silent, side)
			}
			if err := run.Attach(t, host).Close(); err != nil {
				t.Error(err)
			}
			beside := 0
			for _, side := range silent {
				if _, _, err := unix.Recvfrom(side.Descriptor(), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT); errors.Is(err, unix.EAGAIN) {
					beside++
				}
				if err := side.Close(); err != nil {
					t.Error(err)
				}
			}
			return beside == len(silent)
		})
	}
}

// TestShareTerminated: what a program has left that SIGTERM has ended is removed by who lists programs, and is no program to anybody.
func TestShareTerminated(t *testing.T) {
	s := share(t, []string{"--name", "ended"}, harness.Python(t), "-c", "import time; time.sleep(1000)")
	s.start(t)
	harness.Eventually(t, harness.StartBound, "it listens", func() bool { return len(s.left(t)) == 1 })
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != -1 || len(s.left(t)) != 1 {
		t.Errorf("status %d, left %v", status, s.left(t))
	}
	if err := os.WriteFile(filepath.Join(s.run, "other.1"), nil, 0o600); err != nil { // is none of ours
		t.Fatal(err)
	}
	for _, found := range programs.Live() { // others of the user's may run beside the tests
		if filepath.Dir(found.Path) == s.run {
			t.Errorf("%+v", found)
		}
	}
	if left := s.left(t); len(left) != 1 || left[0] != "other.1" {
		t.Errorf("left %v", left)
	}
}
