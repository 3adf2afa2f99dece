package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachCalls: several hosts call functions of one program, on its main thread while it serves, and the program calls functions of
// theirs: within a call those of the host that has made it, else those of the host that has come last.
func TestAttachCalls(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, os, threading
print(ndbridge.listen(), flush=True)
main = threading.get_ident()
def where(): return threading.get_ident() == main
def ask(x): return ndbridge.host.who() + str(x)
def outside():
    said = []
    def run():
        try: said.append(ndbridge.host.who())
        except Exception as e: said.append(type(e).__name__)
    t = threading.Thread(target=run); t.start(); t.join()
    return said[0]
def names(): return dir(ndbridge.host)
def leave(): raise KeyboardInterrupt
ndbridge.serve()
`, harness.RunningOptions{Heap: true})
	host := harness.NewHost(t)
	all := []*harness.Run{run.Attach(t, host), run.Attach(t, host), run.Attach(t, host)}
	for i, s := range all[:2] {
		name := fmt.Sprintf("host %d ", i)
		if err := s.Handle("who", func(context.Context, hostplugin.Args) (any, error) { return name, nil }); err != nil {
			t.Fatal(err)
		}
	}
	var calling sync.WaitGroup
	for i, s := range all[:2] {
		calling.Go(func() {
			f := fn(t, s, "ask")
			for n := range 20 {
				r, err := f.Call(t.Context(), n)
				if err != nil {
					t.Error(err)
					return
				}
				var got string
				if err := r.Decode(&got); err != nil || got != fmt.Sprintf("host %d %d", i, n) {
					t.Errorf("host %d: %q, %v", i, got, err)
				}
			}
		})
	}
	calling.Wait()
	value := func(s *harness.Run, name string) any {
		v, err := call(t, fn(t, s, name)).Value()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if got := value(all[2], "where"); got != true {
		t.Errorf("a call ran on the main thread: %v", got)
	}
	if got := value(all[2], "outside"); got != "host 1 " {
		t.Errorf("the program called %q", got)
	}
	if err := all[1].Close(); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, harness.StartBound, "the host that is left is called", func() bool { return value(all[2], "outside") == "host 0 " })
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, harness.StartBound, "no host has functions", func() bool { return value(all[2], "outside") == "AttributeError" })
	if got := fmt.Sprint(value(all[2], "names")); got != "[]" {
		t.Errorf("the host's functions: %v", got)
	}
	if _, err := fn(t, all[2], "leave").Call(t.Context()); err == nil {
		t.Error("an interrupt is no error")
	}
	if state := run.Wait(); !strings.Contains(run.Stderr(), "KeyboardInterrupt") || state.Success() {
		t.Errorf("serve goes on after an interrupt: %v, %s", state, run.Stderr())
	}
}

// TestAttachSignals: a program keeps its handlers of signals, the signals that it waits for, and faulthandler, and ends as it would.
func TestAttachSignals(t *testing.T) {
	t.Parallel()
	for _, python := range harness.Pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			run := harness.RunAlone(t, `
import faulthandler, ndbridge, os, signal, sys, threading
faulthandler.enable()
got = []
for s in signal.SIGUSR1, signal.SIGURG, signal.SIGPIPE: signal.signal(s, lambda n, f: got.append(n))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
print(ndbridge.listen(), flush=True)
import remote
threading.Thread(target=remote.serve, daemon=True).start()
waited = signal.sigwait([signal.SIGUSR2])
signal.sigwait([signal.SIGUSR2])
faulthandler._sigsegv()
`, harness.RunningOptions{Python: python, Heap: true})
			host := harness.NewHost(t)
			s := run.Attach(t, host)
			// sigwait holds the main thread; Python's handlers run there, after it.
			run.Remote.Exec(t, "os.kill(os.getpid(), signal.SIGUSR2)")
			harness.Eventually(t, harness.StartBound, "sigwait has returned", func() bool {
				return harness.Eval[bool](t, run.Remote, "globals().get('waited') == signal.SIGUSR2")
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			for _, signal := range []string{"SIGUSR1", "SIGURG", "SIGPIPE"} {
				if !harness.Eval[bool](t, run.Remote, "callable(signal.getsignal(signal."+signal+"))") {
					t.Errorf("the handler of %s is gone", signal)
				}
			}
			run.Attach(t, host)
			if got := harness.Eval[[]int](t, run.Remote, "got"); len(got) > 0 {
				t.Errorf("the program got the signals %v, which nobody has sent", got)
			}
			if err := syscall.Kill(run.PID, syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			state := run.Wait()
			if state.Success() || !strings.Contains(run.Stderr(), "Fatal Python error: Segmentation fault") {
				t.Errorf("%v\n%s", state, run.Stderr())
			}
		})
	}
}
