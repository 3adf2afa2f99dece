package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachToABusyProgram: the main thread of a program that keeps Python's lock for ever, whoever wants it, steps aside for a host.
func TestAttachToABusyProgram(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		came := filepath.Join(t.TempDir(), "came")
		run := harness.RunAlone(t, `
import ndbridge, os, sys
path = ndbridge.listen()
def hook(event, args):
    if event == "compile" and args[1] == "<ndbridge>":
        os.close(os.open(os.environ["CAME"], os.O_CREAT))
sys.addaudithook(hook)
sys.setswitchinterval(1e6)
print(path, flush=True)
while True:
    pass
`, harness.RunningOptions{Python: python, Heap: true, Env: []string{"CAME=" + came}})
		host := harness.NewHost(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			if s, err := host.Attach(ctx, hostplugin.Socket(run.Socket)); err == nil {
				_ = s.Close()
			}
		}()
		harness.Eventually(t, harness.StartBound, "the host is let in", func() bool {
			_, err := os.Stat(came)
			return err == nil
		})
	})
}

// TestFirstLookAtABusyProgram: it stays aside for the first look of a host that has come, for which the host would have to wait until Python lets
// it have the lock. The program does so for a moment only, so on a busy machine it takes more than one program.
func TestFirstLookAtABusyProgram(t *testing.T) {
	t.Parallel()
	looked := false
	for n := 0; n < 20 && !looked; n++ {
		t.Run("", func(t *testing.T) {
			run := harness.RunAlone(t, `
import ndbridge, numpy, sys
x = numpy.arange(3)
path = ndbridge.listen()
sys.setswitchinterval(1e6)
print(path, flush=True)
while True:
    pass
`, harness.RunningOptions{Python: pythonOf(t, "3.14"), Heap: true})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			s, err := harness.NewHost(t).Attach(ctx, hostplugin.Socket(run.Socket))
			if err != nil {
				return
			}
			v, err := s.View(ctx, "x")
			if looked = err == nil; looked && v.Layout().Len() != 3 {
				t.Errorf("the view has %d elements", v.Layout().Len())
			}
		})
	}
	if !looked {
		t.Error("the program did not stay aside for the look of any host")
	}
}

// TestAttachToAFullProgram: a program that has not one descriptor left cannot take a host's connection. The host does not wait for that until
// its time is over, and comes when there are some again.
func TestAttachToAFullProgram(t *testing.T) {
	t.Parallel()
	for _, heap := range []bool{true, false} {
		run := harness.RunAlone(t, `
import ndbridge, os, remote, resource
x = 1
path = ndbridge.listen()
before = resource.getrlimit(resource.RLIMIT_NOFILE)
def fill():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
    kept = []
    try:
        while True:
            kept.append(os.dup(0))
    except OSError:
        return len(kept)
print(path, flush=True)
remote.serve()
`, harness.RunningOptions{Heap: heap})
		if n := harness.Eval[int](t, run.Remote, "fill()"); n == 0 {
			t.Fatal("the program was full before")
		}
		host := harness.NewHost(t)
		s, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket))
		if err == nil {
			t.Fatal(s.Close())
		}
		if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "no descriptor left") {
			t.Errorf("with the heap: %v: %v", heap, err)
		}
		harness.Eval[any](t, run.Remote, "resource.setrlimit(resource.RLIMIT_NOFILE, before)")
		run.Attach(t, host)
	}
}

// TestAttachWithoutThreads: a process that may have no more threads takes no second host, for which Go would want some. The program goes on
// also when many requests of the first one need threads that are not there.
func TestAttachWithoutThreads(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import array, ctypes, ndbridge, remote
class Busy:
    @property
    def x(self):
        ctypes.CDLL(None).usleep(100_000)
        return array.array("d", [1])
x, busy = 1, Busy()
print(ndbridge.listen(), flush=True)
def forbid():
`+strings.ReplaceAll(noThreads, "\n", "\n    ")+`
remote.serve()
`, harness.RunningOptions{Heap: true})
	host := harness.NewHost(t)
	first := run.Attach(t, host)
	harness.Eval[any](t, run.Remote, "forbid()")
	s, err := host.Attach(t.Context(), hostplugin.Socket(run.Socket))
	if err == nil {
		t.Fatal(s.Close())
	}
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "threads more") {
		t.Errorf("the second host: %v", err)
	}
	if _, err := first.Info(t.Context()); err != nil || !run.Alive() {
		t.Errorf("the first host: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var wants sync.WaitGroup
	var served atomic.Int32
	for range 40 {
		wants.Go(func() {
			if v, err := first.Session.View(ctx, "busy.x"); err == nil {
				served.Add(1)
				_ = v.Close() // a copy
			}
		})
	}
	wants.Wait()
	if served.Load() == 0 {
		t.Error("not one of 40 requests was served")
	}
	if got := harness.Eval[int](t, run.Remote, "x + 1"); got != 2 {
		t.Errorf("the program says %d", got)
	}
}
