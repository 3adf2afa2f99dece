package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// otherGo is a library with a Go runtime of its own, as other packages for Python bring one.
const otherGo = `package main

import "C"

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

var heard = make(chan os.Signal, 1)

// garbage makes and collects memory on many threads, and gives how much of what it has kept is still as it was.
//
//export garbage
func garbage(n C.int) C.int {
	results := make(chan int)
	for i := range 8 {
		go func() {
			var kept [][]byte
			for j := range int(n) {
				b := make([]byte, 4096)
				b[j%len(b)] = byte(i)
				if j%16 == 0 {
					kept = append(kept, b)
				}
			}
			runtime.GC()
			right := 0
			for k, b := range kept {
				if b[16*k%len(b)] == byte(i) {
					right++
				}
			}
			results <- right
		}()
	}
	sum := 0
	for range 8 {
		sum += <-results
	}
	return C.int(sum)
}

// faults faults, which the runtime makes a panic of.
//
//export faults
func faults() (recovered C.int) {
	defer func() {
		if recover() != nil {
			recovered = 1
		}
	}()
	var nowhere *int
	*nowhere = 1
	return 0
}

//export listen
func listen() { signal.Notify(heard, syscall.SIGUSR1) }

//export hears
func hears() C.int { return C.int((<-heard).(syscall.Signal)) }

func main() {}
`

// otherGoProgram uses both libraries from its own threads until it is told to stop. The other one was loaded before the plugin, by
// sitecustomize, or is loaded here.
const otherGoProgram = `
import ctypes, os, signal, sys, threading
import numpy as np
import remote
import ndbridge

other = sys.modules["sitecustomize"].other if "before" in sys.argv else ctypes.CDLL(sys.argv[1])
frame = np.arange(1 << 20, dtype=np.int64)
small = np.arange(4)
seen, stopped = [], threading.Event()
signal.signal(signal.SIGUSR2, lambda number, frame: seen.append(number))

def total(x):
    assert other.faults() == 1
    return int(x.sum())

def work():
    while not stopped.is_set():
        assert other.garbage(1000) == 8 * 63 and other.faults() == 1
        ndbridge.publish("version", np.full(20000, len(rounds)))
        rounds.append(1)

rounds = []
workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
other.listen()
remote.serve()
`

func buildOtherGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": otherGo, "go.mod": "module other\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildmode=c-shared", "-o", "other.so", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "other.so")
}

// TestAnotherGoLibrary: the program has a second Go runtime, which was loaded before the plugin's or after it. Both collect, fault,
// and take signals, while the host looks, calls and waits for versions.
func TestAnotherGoLibrary(t *testing.T) {
	t.Parallel()
	library := buildOtherGo(t)
	for _, order := range []string{"before", "after"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			site := t.TempDir()
			if order == "before" {
				text := fmt.Sprintf("import ctypes\nother = ctypes.CDLL(%q)\nassert other.faults() == 1\n", library)
				if err := os.WriteFile(filepath.Join(site, "sitecustomize.py"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := harness.Start(t, otherGoProgram, harness.Options{Args: []string{library, order}, Env: map[string]string{"PYTHONPATH": site}})
			useBoth(t, run)
			for _, name := range []string{"SIGUSR1", "SIGUSR2"} {
				run.Remote.Exec(t, "os.kill(os.getpid(), signal."+name+")")
			}
			if got := harness.Eval[int](t, run.Remote, "other.hears()"); got != 10 {
				t.Errorf("the other library hears signal %d", got)
			}
			becomesTrue(t, run, "seen == [signal.SIGUSR2]")
			run.Remote.Exec(t, "stopped.set(); [worker.join() for worker in workers]; assert len(rounds) > 1")
			if err := run.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// driverProgram asks a server that is not there, again and again, by a driver that is a Go library.
const driverProgram = `
import threading
import numpy as np
import remote
import ndbridge
import adbc_driver_flightsql, adbc_driver_manager

def refused():
    with adbc_driver_flightsql.connect("grpc://127.0.0.1:1") as database, \
            adbc_driver_manager.AdbcConnection(database) as connection, adbc_driver_manager.AdbcStatement(connection) as statement:
        statement.set_sql_query("SELECT 1")
        try:
            statement.execute_query()
        except adbc_driver_manager.OperationalError as error:
            return "connection refused" in str(error)

def total(x):
    assert refused()
    return int(x.sum())

def work():
    while not stopped.is_set():
        assert refused()
        ndbridge.publish("version", np.full(20000, len(rounds)))
        rounds.append(1)

frame, small = np.arange(1 << 20, dtype=np.int64), np.arange(4)
rounds, stopped = [], threading.Event()
workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
remote.serve()
`

// TestGoDriverOfAPackage: a driver of ADBC, which is a Go library, works beside the plugin.
func TestGoDriverOfAPackage(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, driverProgram, harness.Options{Python: harness.PythonADBC(t)})
	useBoth(t, run)
	run.Remote.Exec(t, "stopped.set(); [worker.join() for worker in workers]; assert len(rounds) > 1")
	if err := run.Close(); err != nil {
		t.Error(err)
	}
}

// useBoth looks, calls and waits for versions from several goroutines.
func useBoth(t *testing.T, run *harness.Run) {
	t.Helper()
	view := run.View(t, "frame")
	if got := slice[int64](t, view); got[1<<19] != 1<<19 || view.Route() != contract.RouteSharedHeap {
		t.Fatalf("frame has %d, by %v", got[1<<19], view.Route())
	}
	total, mine := fn(t, run, "total"), array(t, run, core.Int64, 1<<15)
	slice[int64](t, mine)[7] = 42
	source, err := run.Source("version")
	if err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			var version *core.View
			for range 20 {
				small, err := run.Session.View(t.Context(), "small")
				if err != nil {
					t.Error(err)
					return
				}
				if at, err := core.At[int64](small, 3); err != nil || at != 3 {
					t.Error(at, err)
				}
				small.Close()
				var sum int64
				result, err := total.Call(t.Context(), mine)
				if err == nil {
					err = errors.Join(result.Decode(&sum), result.Close())
				}
				if err != nil || sum != 42 {
					t.Error(sum, err)
					return
				}
				if version, err = source.Next(t.Context(), version); err != nil {
					t.Error(err)
					return
				}
			}
			version.Close()
		})
	}
	users.Wait()
}
