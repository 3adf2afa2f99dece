package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// children is a program with a child of each kind. Each holds its own number in mine, and they end with the program's input.
const children = `
import multiprocessing, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("error")
mine = bytearray(os.getpid().to_bytes(4, "little") * (1 << 15))

def work(gone):
    mine[:] = os.getpid().to_bytes(4, "little") * (1 << 15)
    gone.wait()

def main():
    before = threading.active_count(), len(sys._current_frames())
    for kind in "fork", "spawn", "forkserver":
        context = multiprocessing.get_context(kind)
        gone = context.Event()
        context.Process(target=work, args=(gone,), daemon=True).start()
        globals()[kind] = gone
    child = os.fork()
    if child == 0:
        mine[:] = os.getpid().to_bytes(4, "little") * (1 << 15)
        if os.fork() == 0:
            mine[:] = os.getpid().to_bytes(4, "little") * (1 << 15)
        os.read(0, 1)
        os._exit(0)
    other = subprocess.Popen([sys.executable, "-c", "import os; mine = bytearray(os.getpid().to_bytes(4, 'little') * (1 << 15)); os.read(0, 1)"])
    print("ready", before == (threading.active_count(), len(sys._current_frames())), flush=True)
    os.read(0, 1)
    for kind in "fork", "spawn", "forkserver":
        globals()[kind].set()
    os.waitpid(child, 0)
    other.wait()

if __name__ == "__main__":
    main()
`

// numberIn gives what a program's array mine holds.
func numberIn(t *testing.T, s *hostplugin.Session) int {
	t.Helper()
	v, err := s.View(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	data := slice[uint8](t, v)
	return int(data[0]) | int(data[1])<<8 | int(data[2])<<16 | int(data[3])<<24
}

// TestShareChildren: a host comes to every child of a program, whichever way it was made, before and after it has come to the program, and
// the program is not warned.
func TestShareChildren(t *testing.T) {
	script := filepath.Join(t.TempDir(), "family.py")
	if err := os.WriteFile(script, []byte(children), 0o600); err != nil {
		t.Fatal(err)
	}
	host := harness.NewHost(t)
	for _, python := range append(harness.Pythons(t), harness.Python(t)) {
		s := share(t, nil, python, script)
		s.start(t)
		harness.Eventually(t, harness.StartBound, "it is ready", func() bool { return strings.HasPrefix(s.stdout.String(), "ready True") })
		parent := s.attach(t, host, hostplugin.Name("family"))
		if got := numberIn(t, parent); got != s.Process.Pid {
			t.Errorf("family is %d, not %d", got, s.Process.Pid)
		}
		var names []string
		harness.Eventually(t, harness.StartBound, "all children listen", func() bool {
			found, err := parent.Children(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names = names[:0]
			for _, c := range found {
				names = append(names, c.Name)
			}
			slices.Sort(names)
			return !slices.Contains(names, "") && len(names) >= 8
		})
		want := []string{"family", "family", "family", "forkserver", "forkserver", "python", "resource_tracker", "spawn"}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", python, names, want)
		}
		found, err := parent.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, c := range found {
			if c.Err != nil || c.Parent == 0 {
				t.Errorf("%+v", c)
			}
			child, err := host.Attach(t.Context(), hostplugin.PID(c.PID))
			if err != nil {
				t.Errorf("%s: %+v: %v", python, c, err)
				continue
			}
			if c.Name == "family" || c.Name == "spawn" || c.Name == "python" {
				held++
				if got := numberIn(t, child); got != c.PID {
					t.Errorf("%s: %+v holds the array of %d", python, c, got)
				}
			}
			if err := child.Close(); err != nil {
				t.Error(err)
			}
		}
		if held < 5 {
			t.Errorf("%s: %d children have the array", python, held)
		}
		if err := parent.Close(); err != nil {
			t.Error(err)
		}
		if status := s.end(t); status != 0 || s.stderr.String() != "" {
			t.Errorf("%s: status %d, %s", python, status, s.stderr.String())
		}
		if left := s.left(t); len(left) != 0 {
			t.Errorf("%s: left %v", python, left)
		}
	}
}

// TestShareForkedByAProgramWithAHost: a host can come to a child of a program that had one when it forked, and to a child of that child: Go
// runs there anew, beside what is left of the parent's.
func TestShareForkedByAProgramWithAHost(t *testing.T) {
	host := harness.NewHost(t)
	for _, python := range append(harness.Pythons(t), harness.Python(t)) {
		s := share(t, nil, python, "-W", "error", "-c", `
import os
import numpy as np
generation = 0
mine = np.full(1 << 17, 0.0)
def fork():
    global generation, mine
    pid = os.fork()
    if pid:
        return pid
    generation += 1
    mine[:] = generation
def doubled(a): return a * 2
def again(): # on the main thread
    import time
    while not wanted: time.sleep(0.01)
    wanted.clear()
    return fork()
wanted = []
def want(): wanted.append(1)
while True: again()
`)
		s.start(t)
		harness.Eventually(t, harness.StartBound, "it listens", func() bool { return len(s.left(t)) == 1 })
		session := s.attach(t, host, hostplugin.PID(s.Process.Pid))
		for generation := range 4 {
			v, err := session.View(t.Context(), "mine")
			if err != nil {
				t.Fatalf("%s: generation %d: %v", python, generation, err)
			}
			if got := slice[float64](t, v)[7]; got != float64(generation) {
				t.Errorf("generation %d has %v", generation, got)
			}
			a, err := session.New(core.Float64, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for name, args := range map[string][]any{"doubled": {a}, "want": nil} {
				f, err := session.Func(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := f.Call(t.Context(), args...)
				if err != nil {
					t.Fatalf("%s: generation %d: %v", python, generation, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			var next []hostplugin.Child
			harness.Eventually(t, harness.StartBound, "it has forked", func() bool {
				next, err = session.Children(t.Context())
				return err == nil && len(next) == 1 && next[0].Name != ""
			})
			child := s.attach(t, host, hostplugin.PID(next[0].PID))
			if generation%2 == 0 { // the others have two hosts at a time
				if err := session.Close(); err != nil {
					t.Error(err)
				}
			}
			session = child
		}
		if s.stderr.String() != "" {
			t.Errorf("%s: %s", python, s.stderr.String())
		}
	}
}
