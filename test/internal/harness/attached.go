package harness

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// AttachedEnv makes [Start] attach to all programs, as [Options].Attached says.
const AttachedEnv = "NDBRIDGE_TEST_ATTACHED"

// attach runs the program of a configuration as "ndbridge run --share" would, and attaches to it when its script has ended, or serves
// remote.py: whatever it does first it does before there is a host. It stays when its script has ended, as under a host.
func attach(tb testing.TB, host *hostplugin.Host, p *hostplugin.Program, remote *Remote, log *Log) (*hostplugin.Session, error) {
	tb.Helper()
	dir, err := os.MkdirTemp("", "nda") //nolint:usetesting // a test's own folder may be too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	ended := filepath.Join(dir, "ended")
	text, err := os.ReadFile(p.Script)
	if err == nil {
		const stays = "\nif __name__ == '__main__':\n    open(%, 'w').close()\n    __import__('time').sleep(1e6)\n"
		err = os.WriteFile(p.Script, append(text, strings.Replace(stays, "%", strconv.Quote(ended), 1)...), 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(p.Python, append([]string{p.Script}, p.Args...)...) //nolint:noctx // the test's end kills it
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), "PYTHONPATH="+Library(tb, "python"), "LD_PRELOAD="+Library(tb, "libndbridge-heap.so"),
		"NDBRIDGE_HEAP_LISTEN="+dir, "NDBRIDGE_HEAP_NAME="+p.Name)
	for name, value := range map[string]string{
		"NDBRIDGE_HEAP_PROMOTE": p.SharedHeap.Promote, "NDBRIDGE_HEAP_LIBRARIES": strings.Join(p.SharedHeap.Libraries, ","),
	} {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	for name, value := range p.Env {
		if name == "PYTHONPATH" {
			value = Library(tb, "python") + ":" + value
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var output bootstraptest.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&output, log), io.MultiWriter(&output, log)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	Eventually(tb, StartBound, "the script has ended, or serves remote.py", func() bool {
		_, err := os.Stat(ended)
		return err == nil || remote.called() || !Alive(cmd.Process.Pid)
	})
	if !Alive(cmd.Process.Pid) {
		tb.Fatalf("the program has ended:\n%s", output.String())
	}
	ctx, cancel := context.WithTimeout(tb.Context(), StartBound)
	defer cancel()
	return host.Attach(ctx, hostplugin.Socket(filepath.Join(dir, p.Name+"."+strconv.Itoa(cmd.Process.Pid))).Await())
}
